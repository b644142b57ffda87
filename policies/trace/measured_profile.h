// From times of single ops in several steps to a profile: medians over the steps and over layers
// that do the same; of bytes, the most.
#pragma once

#include <string>
#include <vector>

#include "policies/trace/profile.h"
#include "policies/trace/trace.h"

namespace rematch {

// Measurements. Steps in which every op is timed take longer as a whole, so the time of a step
// beyond its ops is taken from steps without observers.
struct TimedSteps {
  struct Ops {
    std::vector<Profile::Duration> forward;   // by OpId
    std::vector<Profile::Duration> backward;  // by op of backward
    std::vector<std::int32_t> kernels;        // that forward launched, by OpId; empty: not counted
  };
  // Bytes that kernels allocated inside, above the op boundary.
  struct Temporaries {
    std::vector<Bytes> forward;   // by OpId
    std::vector<Bytes> backward;  // by op of backward
  };
  std::vector<Ops> watched;
  std::vector<Temporaries> weighed;  // one entry for each step that was; empty: not measured
  // One entry for each step that was not watched.
  std::vector<Profile::Duration> forward;
  std::vector<Profile::Duration> backward;
  std::vector<Profile::Duration> optimizer;
};

// Throws std::invalid_argument unless there are watched and unwatched steps, and every watched and
// weighed step has the trace's ops.
Profile measured_profile(const Trace& trace, const std::string& device, const TimedSteps& steps);

// A profile that names its ops instead of its trace, as one of `trace`, equal layers with the
// median of their times; any other, and one of other ops, as it is.
Profile profile_for_trace(Profile profile, const Trace& trace);

}  // namespace rematch
