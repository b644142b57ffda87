// A profile measured on a CUDA device: real steps of the model. Op times are kernel times by
// CUPTI's records, temporaries are the caching allocator's. Steps that are timed as a whole,
// recorded and weighed are different ones, so that none disturbs another.
#pragma once

#include "harness/training/training.h"
#include "policies/trace/profile.h"
#include "policies/trace/trace.h"

namespace rematch {

// `trace` is the model's, recorded on meta; the settings' device is CUDA's. Throws
// std::runtime_error: with the op named if the model does not run its trace's ops, and with what
// to do if activity cannot be recorded or does not add up.
Profile profile_on_cuda(const Trace& trace, const TrainingSettings& settings, int num_steps);

}  // namespace rematch
