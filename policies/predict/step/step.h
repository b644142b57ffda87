// Predicts a whole training step under a plan: the bytes at every op boundary of forward,
// recompute, backward and optimizer, and with a profile also the time. Bytes are exact, apart from
// memory that kernels allocate internally.
//
// Note [One instance or two] A storage that forward made exists once, even if it has many holders:
// the program, autograd, and regions that keep or read it. Recompute makes a second instance, which
// only its region holds. The simulator therefore counts the holders of a forward storage, but
// simply adds the bytes of recompute.
//
// Note [A stage's micro-batches] While a stage of a pipeline runs one pass, its other micro-batches
// in flight hold what their forward left for backward, and TracedStage::held_bytes. So the bytes of
// a pass are those of a step of one micro-batch, plus a constant. Only the number of other
// micro-batches matters, and whether gradients exist. Two simulated micro-batches therefore have
// the peak of any number: the first one, and the later ones. Each counts as many others as there
// are at most in the schedule.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "policies/base/bytes.h"
#include "policies/plan/plan.h"
#include "policies/predict/device/links.h"
#include "policies/predict/pipeline/rank_holds.h"
#include "policies/predict/region/region.h"
#include "policies/predict/step/optimizer_bytes.h"
#include "policies/trace/holder.h"
#include "policies/trace/host_memory.h"
#include "policies/trace/phase.h"
#include "policies/trace/profile.h"
#include "policies/trace/trace.h"

namespace rematch {

// The bytes that are alive after one op, by holder.
struct StepBoundary {
  Phase phase = Phase::kForward;
  // top-level scope of the forward op, or of the autograd node that is running
  std::optional<ScopeId> scope;
  HolderBytes holders;
  bool operator==(const StepBoundary&) const = default;
};

struct StepTime {
  using Duration = Profile::Duration;
  Duration forward{};
  Duration recompute{};
  Duration backward{};
  Duration optimizer{};
  Duration communication{};  // time of collectives, which is part of the four times above
  // Time that the step waits for copies between device and host. 0 without use_link(). Not included
  // in total().
  Duration copies{};
  Duration total() const { return forward + recompute + backward + optimizer; }
  bool operator==(const StepTime&) const = default;
};

struct StepPrediction {
  Bytes before;  // bytes of parameters, constants and optimizer state
  Bytes after_forward;
  // first boundary with the most bytes
  StepBoundary peak;
  std::array<Bytes, kNumPhases> peak_by_phase;  // 0 if no op ran in the phase
  HostMemory host;
  std::int64_t recomputed_ops = 0;                 // number of ops, including views
  std::optional<StepTime> time;                    // absent without a profile
  std::optional<std::int64_t> recomputed_kernels;  // absent without a profile that counts kernels
  Bytes peak_bytes() const { return peak.holders.total(); }
};

// Details of a simulation: every boundary, and the ops that the step recomputed.
struct StepDetails {
  // Every boundary of forward and backward in order, and then the boundary with the optimizer's
  // peak.
  std::vector<StepBoundary> boundaries;
  std::vector<OpId> recomputed;  // in the order of execution, in one micro-batch
};

// A region: its op range in the trace, and what a plan does with its ops. `type` must outlive the
// call.
struct LocatedRegion {
  OpRange range;
  const RegionType* type = nullptr;
};

// Simulates any number of plans for one trace. Caches the graphs of regions, which plans share. Not
// thread-safe.
class StepSimulator {
 public:
  // The trace must outlive the simulator. The sizes of the optimizer's tensors are rounded up to
  // multiples of `round`. The sizes of the trace's tensors are used as they are.
  explicit StepSimulator(const Trace& trace, OptimizerKind optimizer = OptimizerKind::kAdamW,
                         std::int64_t round = 1);
  ~StepSimulator();
  StepSimulator(const StepSimulator&) = delete;
  StepSimulator& operator=(const StepSimulator&) = delete;

  // Adds times to all later simulations. Throws std::invalid_argument if the profile belongs to
  // another trace.
  void use_profile(const Profile& profile);

  // Adds the time of copies to all later simulations: see Note [What hides a copy].
  void use_link(const HostLink& link);

  // Sets the bytes of gathered parameters that are held while each forward op runs. These bytes
  // count as `other`. The trace must already include the gathered bytes of backward. See
  // sharding.h.
  void use_gathered(IdTable<OpId, Bytes> gathered);

  // If `details` is not null, also fills `details`, which takes longer. Throws
  // std::invalid_argument if the plan was made for another model.
  StepPrediction simulate(const Plan& plan, Schedule schedule, StepDetails* details = nullptr);
  // `regions` must be disjoint and in forward order.
  StepPrediction simulate(const std::vector<LocatedRegion>& regions, Schedule schedule);

  // Like simulate(), for a stage whose rank also runs other stages. simulate() leaves out what the
  // other stages hold.
  StepPrediction simulate_beside(const HeldByOthers& others, const Plan& plan, Schedule schedule,
                                 StepDetails* details = nullptr);

  // Returns what a stage of a pipeline holds.
  StageHolds holds(const Plan& plan, Schedule schedule);

 private:
  class Facts;
  struct MicroBatch;
  class MicroBatchRun;

  StepPrediction simulate_step(const std::vector<LocatedRegion>& regions, Schedule schedule,
                               StepDetails* details);
  StepPrediction simulate_stage(const std::vector<LocatedRegion>& regions, Schedule schedule,
                                const HeldByOthers& others, StepDetails* details);
  void add_weight_passes(const HeldByOthers& others, StepDetails* details,
                         StepPrediction& step) const;
  StageHolds holds(const std::vector<LocatedRegion>& regions, Schedule schedule);

  std::vector<LocatedRegion> place(const Plan& plan) const;

  std::unique_ptr<Facts> facts_;
};

}  // namespace rematch
