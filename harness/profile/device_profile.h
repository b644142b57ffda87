// Measures a profile on this machine's CPU or on a CUDA device. Ops are measured within real steps
// of the model, not one by one. On the CPU the time of an op is the time of its call. On CUDA it is
// the kernel time from CUPTI's records, and temporaries come from the caching allocator.
#pragma once

#include "harness/training/training.h"
#include "policies/trace/profile.h"
#include "policies/trace/trace.h"

namespace rematch {

// `trace` is the model's trace, recorded on meta. Runs `num_steps` steps of each kind after
// warm-up. Throws std::runtime_error if the model does not run its trace's ops; the message names
// the op. Throws std::runtime_error if activity cannot be recorded or is inconsistent; the message
// says what to do. Throws Interrupted, between two steps, if an InterruptGuard saw a signal.
Profile profile_on_device(const Trace& trace, const TrainingSettings& settings, int num_steps);

}  // namespace rematch
