// How long a step takes between two bounds, as far as communication may hide beneath compute. Which
// of them a real step comes near is never assumed.
//
// Note [What overlap can save]
// A collective runs beside compute where nobody waits for its result yet: a gather that is issued
// early, a reduce-scatter behind the next block's backward. Nothing overlapping, the step takes
// compute and communication one after the other. With all of it overlapping, it takes the longer of
// the two, and no order of the same work can take less. Communication on several links at once and
// compute that slows down beside it are left out.
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

// The time that collectives take of a step that recomputes nothing. The profile is the trace's.
Profile::Duration communication_time(const Trace& trace, const Profile& profile);

}  // namespace rematch
