// Measures a profile on this machine's CPU or on a CUDA device, in real steps of the model. On the
// CPU, the time of an op is the time of its call. On CUDA, it is the kernel time from CUPTI's
// records.
#pragma once

#include "harness/training/training.h"
#include "policies/trace/profile.h"
#include "policies/trace/trace.h"

namespace rematch {

// Makes each kind of measurement in `num_steps` steps, after warm-up. `trace` must be recorded on
// meta. Throws std::runtime_error if the model runs ops other than the traced ops, or if activity
// cannot be recorded.
// Throws Interrupted, between two steps, if an InterruptGuard saw a signal.
Profile profile_on_device(const Trace& trace, const TrainingSettings& settings, int num_steps);

}  // namespace rematch
