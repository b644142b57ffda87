// Predicts a step of a plan as the records that a measured step would have. The only predictor of
// the product: `rematch predict` and `rematch run` use it for models and for stored traces.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "policies/plan/plan.h"
#include "policies/predict/device/sharding.h"
#include "policies/predict/step/counts.h"
#include "policies/predict/step/step.h"
#include "policies/predict/step/step_range.h"
#include "policies/trace/profile.h"
#include "policies/trace/trace.h"
#include "reports/record/point.h"

namespace rematch {

struct PredictedStep {
  std::string policy;
  Schedule schedule = Schedule::kOnDemand;
  bool has_regions = false;  // without regions there is no schedule to show
  std::string plan_sha256;
  CountsRecord counts;  // counts of one step
  MemoryRecord memory;
  Traffic traffic;
  std::int64_t recomputed_flops = 0;  // flops of matmul and attention that are repeated
  std::optional<StepRange> range;     // present if times are known
  std::string refused;                // why the model cannot have the policy; empty: it can
  std::optional<bool> fits;           // present if the memory of a card is known
};

// A trace with sizes as an allocator rounds them up: see rounded_trace() in
// harness/run/prediction/prediction.h.
struct RoundedTrace {
  Trace trace;
  std::int64_t round = 1;  // sizes are multiples of this number
};

// A model's trace, and what a prediction needs besides. Only the trace is known of a stored trace.
struct TracedModel {
  Trace trace;
  // If present, allocated bytes are those of this trace. Its ops must equal the trace's ops.
  std::optional<RoundedTrace> rounded = {};
  // The ops of one update of the optimizer: "aten::add_".
  std::map<std::string, std::int64_t> optimizer_ops = {};
  // Bytes of weights that are not trained. A trace counts them as constants.
  Bytes frozen = {};
};

struct PredictorSettings {
  OptimizerKind optimizer = OptimizerKind::kAdamW;
  // The number of ranks among which shard_step() divides parameters by estimate.
  int world = 1;
  const Profile* profile = nullptr;  // null: times are not predicted
};

class StepPredictor {
 public:
  // The model must outlive the predictor. The profile must belong to its trace.
  explicit StepPredictor(const TracedModel& model, PredictorSettings settings = {});

  // Throws std::invalid_argument if the plan was made for another model.
  PredictedStep predict(const Plan& plan, Schedule schedule);

 private:
  CountsRecord counts(const std::vector<OpId>& recomputed) const;

  const TracedModel& model_;
  ShardedStep sharded_;
  StepSimulator simulator_;
  std::optional<StepSimulator> rounded_;
};

}  // namespace rematch
