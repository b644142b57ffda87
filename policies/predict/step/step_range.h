// Bounds the time of a step. The lower bound assumes that communication overlaps fully with
// compute. The upper bound assumes no overlap.
//
// Note [What overlap can save] A collective can run in parallel with compute until its result is
// needed, for example a reduce-scatter during backward of the next block. Without overlap, a step
// takes the sum of compute time and communication time. With full overlap, it takes the longer of
// the two, and no order of the same ops is faster. The model ignores that collectives on several
// links can run at once, and that communication slows compute down.
#pragma once

#include <algorithm>

#include "policies/predict/step/step.h"
#include "policies/trace/profile.h"
#include "policies/trace/trace.h"

namespace rematch {

struct StepRange {
  Profile::Duration compute{};
  Profile::Duration communication{};

  Profile::Duration nothing_overlaps() const { return compute + communication; }
  Profile::Duration all_overlaps() const { return std::max(compute, communication); }
  bool operator==(const StepRange&) const = default;
};

inline StepRange step_range(const StepTime& time) {
  return {time.total() - time.communication, time.communication};
}

// Returns the time of all collectives in a step without recompute. The profile must belong to the
// trace.
Profile::Duration communication_time(const Trace& trace, const Profile& profile);

}  // namespace rematch
