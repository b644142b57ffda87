// rematch run. Without LibTorch, without_libtorch.cpp defines it.
#pragma once

#include "harness/cli/exit_code.h"

namespace rematch {

struct RunFlags;

ExitCode run_points(const RunFlags& flags);

}  // namespace rematch
