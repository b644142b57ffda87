// rematch doctor. Without LibTorch, without_libtorch.cpp defines it.
#pragma once

#include "harness/cli/exit_code.h"

namespace rematch {

ExitCode doctor(bool json);

}  // namespace rematch
