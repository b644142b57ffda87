// A whole training step under a plan, as the engine runs it: bytes at every op boundary of forward,
// recompute, backward and optimizer, byte for byte, and the time it takes with a profile. Knows
// nothing of what kernels allocate inside.
//
// Note [One instance or two]
// Forward's storage is one instance, however many hold it: the program, autograd,
// the region that keeps it and regions that read it. What recompute makes is another instance, held
// by its region alone. So the first kind is counted by holders, the second added up.
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
#include "policies/predict/region/region.h"
#include "policies/predict/step/optimizer_bytes.h"
#include "policies/trace/phase.h"
#include "policies/trace/profile.h"
#include "policies/trace/trace.h"

namespace rematch {

struct StepHolders {
  Bytes parameters;
  Bytes gradients;
  Bytes optimizer;
  Bytes saved_activations;    // made in forward and alive when it ends
  Bytes recompute_transient;  // made by recompute
  Bytes other;                // constants, forward's temporaries, what backward makes on the way
  Bytes total() const {
    return parameters + gradients + optimizer + saved_activations + recompute_transient + other;
  }
  bool operator==(const StepHolders&) const = default;
};

// After one op.
struct StepBoundary {
  Phase phase = Phase::kForward;
  std::optional<ScopeId> scope;  // top-level: whose forward it is, or whose node is at work
  StepHolders holders;
  bool operator==(const StepBoundary&) const = default;
};

struct StepTime {
  using Duration = Profile::Duration;
  Duration forward{};
  Duration recompute{};
  Duration backward{};
  Duration optimizer{};
  Duration communication{};  // the part of all these that collectives take
  Duration total() const { return forward + recompute + backward + optimizer; }
  bool operator==(const StepTime&) const = default;
};

// Host memory that holds what the plan offloads.
struct StepHost {
  Bytes peak;
  Bytes copied_out;
  Bytes copied_back;
  bool operator==(const StepHost&) const = default;
};

struct StepPrediction {
  Bytes before;  // parameters, constants, optimizer state
  Bytes after_forward;
  StepBoundary peak;                            // the first of the highest boundaries
  std::array<Bytes, kNumPhases> peak_by_phase;  // 0: no op ran in it
  StepHost host;
  std::int64_t recomputed_ops = 0;                 // views included
  std::optional<StepTime> time;                    // with a profile
  std::optional<std::int64_t> recomputed_kernels;  // with a profile that has counted kernels
  Bytes peak_bytes() const { return peak.holders.total(); }
};

// A region where it stands, and what a plan says of it. The type must outlive the call.
struct LocatedRegion {
  OpRange range;
  const RegionType* type = nullptr;
};

// Simulates any number of plans for one trace. What plans share (the graphs of their regions) is
// kept from one to the next, so the first of a kind takes longest. Not for two threads at once.
class StepSimulator {
 public:
  // The trace must outlive it.
  explicit StepSimulator(const Trace& trace, OptimizerModel optimizer = OptimizerModel::kAdamW);
  ~StepSimulator();
  StepSimulator(const StepSimulator&) = delete;
  StepSimulator& operator=(const StepSimulator&) = delete;

  // Times of the simulations that follow. Throws std::invalid_argument if it is a profile of
  // another trace.
  void use_profile(const Profile& profile);

  // By op of forward: held while it runs, beside all else; counted as `other`. Of backward, the
  // trace says it. See sharding.h.
  void use_gathered(IdTable<OpId, Bytes> gathered);

  // Throws std::invalid_argument if the plan was made for another model.
  StepPrediction simulate(const Plan& plan, Schedule schedule);
  // `regions` in forward order, disjoint.
  StepPrediction simulate(const std::vector<LocatedRegion>& regions, Schedule schedule);

  // Every boundary of forward and backward, in order, and the optimizer's highest.
  std::vector<StepBoundary> boundaries(const Plan& plan, Schedule schedule);

 private:
  class Facts;
  class Run;

  std::vector<LocatedRegion> place(const Plan& plan) const;

  std::unique_ptr<Facts> facts_;
};

}  // namespace rematch
