// Turns the flags of `rematch run` into a RunRequest. No other code parses these flags.
#pragma once

#include <string>
#include <vector>

#include "harness/cli/flags/shared_flags.h"
#include "harness/run/run_request.h"

namespace rematch {

// Returns the request that the flags describe. Reads the files of policies and plans, but does not
// check whether this machine has the device. Throws UsageError, and what require_given_plans()
// throws.
RunRequest request_of(const RunFlags& flags);

// Parses the arguments of `rematch run`, such as those of a sweep's comparison. Throws UsageError.
RunRequest request_of_arguments(const std::vector<std::string>& arguments);
// Returns only the rounds. Ignores unknown flags, so that it accepts the arguments of a newer
// version. Reads no files. Throws UsageError.
RoundRule rounds_of_arguments(const std::vector<std::string>& arguments);

// Sets steps, rounds, seed, threads and the limits of child processes. Throws UsageError.
void set_measurement(const MeasureFlags& flags, RunRequest& request);

// Sets the attention backend and the kernels of timed steps.
void set_kernels(const KernelFlags& flags, RunRequest& request);

// Parses the optimizer of a run: adamw, with or without a learning rate, or none. Throws
// UsageError.
OptimizerChoice parse_optimizer(const std::string& text);

}  // namespace rematch
