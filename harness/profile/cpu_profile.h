// A profile measured on this machine's CPU: real steps of the model, every op timed in its place.
// Steps with and without the timer take turns, so that what lies between ops is known too.
#pragma once

#include "harness/training/training.h"
#include "policies/trace/profile.h"
#include "policies/trace/trace.h"

namespace rematch {

// `trace` is the model's, recorded on meta. Takes 2 * num_steps steps after warm-up. Throws
// std::runtime_error, with the op named, if the model does not run its trace's ops; Interrupted,
// between two steps, if an InterruptGuard saw a signal.
Profile profile_on_cpu(const Trace& trace, const TrainingSettings& settings, int num_steps);

}  // namespace rematch
