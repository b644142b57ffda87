// Predicts a step under a plan, in the same records as a measured step. `rematch predict` and
// `rematch run` both use this predictor, for models and for stored traces.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policies/plan/plan.h"
#include "policies/predict/device/sharding.h"
#include "policies/predict/pipeline/rank_holds.h"
#include "policies/predict/step/counts.h"
#include "policies/predict/step/step.h"
#include "policies/predict/step/step_range.h"
#include "policies/trace/profile.h"
#include "policies/trace/trace.h"
#include "reports/record/point.h"

namespace rematch {

// The figures of one stage of a pipeline.
struct PredictedStage {
  std::int64_t rank = 0;  // position along pp of the rank that runs the stage
  // The peak of the rank while it runs this stage. It includes what the rank's other stages hold.
  MemoryRecord memory;
  std::int64_t in_flight = 1;  // most micro-batches in flight, including the running one
  // Times of one micro-batch. Backward includes recompute. Absent without a profile.
  std::optional<Profile::Duration> forward;
  std::optional<Profile::Duration> backward;
  std::optional<Profile::Duration> weights;  // the weight pass; only with ZB-H1
};

struct PredictedStep {
  std::string policy;
  Schedule schedule = Schedule::kOnDemand;
  bool has_regions = false;  // if false, the plan recomputes nothing and the schedule has no effect
  std::string plan_sha256;
  CountsRecord counts;  // counts of one step
  MemoryRecord memory;
  Traffic traffic;
  std::int64_t recomputed_flops = 0;  // flops of repeated matmuls and attention
  std::optional<StepRange> range;     // present if times are known
  std::string refused;       // why the policy does not apply to the model; empty if it applies
  std::optional<bool> fits;  // present if the card's memory size is known
  // The stages of a pipeline, in order; empty for other models. `memory` is that of the stage with
  // the highest peak, `counts` and `traffic` are sums over one rank of each stage, and `range` is
  // the time of the whole pipeline.
  std::vector<PredictedStage> stages;
  std::string_view schedule_name;      // schedule of the pipeline, such as "1F1B"
  std::optional<double> bubble_ratio;  // share of the step in which the average rank waits
};

// A trace whose sizes are rounded up to the allocator's granularity: see rounded_trace() in
// harness/run/prediction/prediction.h.
struct RoundedTrace {
  Trace trace;
  std::int64_t round = 1;  // sizes are multiples of this number
};

// A model's trace and the other inputs of a prediction. For a stored trace, the other inputs are
// unknown.
struct TracedModel {
  Trace trace;
  // If present, allocated bytes are predicted from this trace. It must have the same ops as
  // `trace`.
  std::optional<RoundedTrace> rounded = {};
  // Number of ops in one optimizer update, by name such as "aten::add_".
  std::map<std::string, std::int64_t> optimizer_ops = {};
  // Bytes of weights that are not trained. A trace counts them as constants.
  Bytes frozen = {};
  // The later stages of a pipeline. This object itself is the first stage.
  std::vector<TracedModel> later_stages = {};
};

// Returns the traces of all stages, in order. Only one without a pipeline.
std::vector<const Trace*> traces_of_stages(const TracedModel& model);

struct PredictorSettings {
  OptimizerKind optimizer = OptimizerKind::kAdamW;
  // The number of ranks among which shard_step() divides the parameters.
  int world = 1;
  const Profile* profile = nullptr;                 // null: times are not predicted
  std::vector<const Profile*> later_profiles = {};  // profiles of a pipeline's later stages
  Profile::Duration passing{};  // time in which an activation passes from stage to stage
};

class StepPredictor {
 public:
  // The model must outlive the predictor. The profile must be of the model's trace.
  explicit StepPredictor(const TracedModel& model, PredictorSettings settings = {});

  // Throws std::invalid_argument if the plan belongs to another model.
  PredictedStep predict(const Plan& plan, Schedule schedule);

 private:
  // The bytes that the rank of a stage holds beside it, in exact and in rounded sizes.
  struct Beside {
    HeldByOthers exact;
    HeldByOthers rounded;
  };

  std::vector<PredictedStep> predict_stages(const std::vector<Plan>& plans, Schedule schedule);
  // `beside` is null for a model without stages.
  PredictedStep predict_own(const Plan& plan, Schedule schedule, const Beside* beside = nullptr);
  PredictedStage own_stage(const StepPrediction& step) const;
  void add_time(PredictedStep& whole) const;
  CountsRecord counts(const std::vector<OpId>& recomputed) const;

  const TracedModel& model_;
  PredictorSettings settings_;
  std::vector<std::unique_ptr<StepPredictor>> later_stages_;
  ShardedStep sharded_;
  StepSimulator simulator_;
  std::optional<StepSimulator> rounded_;
};

}  // namespace rematch
