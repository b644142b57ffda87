// Implements rematch search --measure. In a build without LibTorch, without_libtorch.cpp implements
// it instead.
#pragma once

#include "harness/cli/exit_code.h"

namespace rematch {

struct SearchFlags;
struct FrontRecord;

// Throws UsageError if search --measure cannot measure here. The reasons are: the build has no
// LibTorch, the times are from another device, or the trace comes without its model.
void require_measurable(const SearchFlags& flags);

// Runs the chosen points of the front and its baselines, and fills in the front's measured figures.
// Returns kOk, kSomePointsFailed, or kGateFailed if bits differ from the reference's. Throws
// Interrupted; its message says which runs are kept.
ExitCode measure_front(const SearchFlags& flags, FrontRecord& record);

}  // namespace rematch
