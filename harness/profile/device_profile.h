// A profile measured on this machine's CPU or on a CUDA device: real steps of the model, every op
// in its place. On the CPU ops are timed as calls; on CUDA op times are kernel times by CUPTI's
// records, and temporaries are the caching allocator's.
#pragma once

#include "harness/training/training.h"
#include "policies/trace/profile.h"
#include "policies/trace/trace.h"

namespace rematch {

// `trace` is the model's, recorded on meta. Takes `num_steps` steps of each kind after warm-up.
// Throws std::runtime_error: with the op named if the model does not run its trace's ops, and with
// what to do if activity cannot be recorded or does not add up; Interrupted, between two steps, if
// an InterruptGuard saw a signal.
Profile profile_on_device(const Trace& trace, const TrainingSettings& settings, int num_steps);

}  // namespace rematch
