// Turns times of single ops in several steps into a profile. Times are medians over the steps and
// over layers with the same ops. Bytes are maxima.
#pragma once

#include <string>
#include <vector>

#include "policies/trace/profile.h"
#include "policies/trace/trace.h"

namespace rematch {

// Measurements of several steps. Timing every op slows a step down, so whole steps are timed
// separately, without observers.
struct TimedSteps {
  struct Ops {
    std::vector<Profile::Duration> forward;   // indexed by OpId
    std::vector<Profile::Duration> backward;  // indexed by op of backward
    // Number of kernels that each op of forward launched, indexed by OpId; empty: not counted.
    std::vector<std::int32_t> kernels;
  };
  // Bytes that kernels allocate internally, in addition to the bytes at the op boundary.
  struct Temporaries {
    std::vector<Bytes> forward;   // indexed by OpId
    std::vector<Bytes> backward;  // indexed by op of backward
  };
  std::vector<Ops> watched;
  // One entry per step in which temporaries were measured.
  std::vector<Temporaries> weighed;
  // One entry per step that ran without observers.
  std::vector<Profile::Duration> forward;
  std::vector<Profile::Duration> backward;
  std::vector<Profile::Duration> optimizer;
};

// Throws std::invalid_argument if `watched` is empty, if no step ran without observers, or if the
// ops of a step in `watched` or `weighed` differ from the trace's ops.
Profile measured_profile(const Trace& trace, const std::string& device, const TimedSteps& steps);

// Completes a profile that has an ops_sha256 and no trace_sha256: adds the trace's hash, and gives
// equal layers the median of their times. If the trace has several micro-batches, converts a
// profile of one. Returns all other profiles unchanged, including profiles whose ops differ from
// the trace's ops.
Profile profile_for_trace(Profile profile, const Trace& trace);

}  // namespace rematch
