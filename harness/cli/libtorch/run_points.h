// Implements rematch run. In a build without LibTorch, without_libtorch.cpp implements it instead.
#pragma once

#include "harness/cli/exit_code.h"

namespace rematch {

struct RunFlags;

ExitCode run_points(const RunFlags& flags);

}  // namespace rematch
