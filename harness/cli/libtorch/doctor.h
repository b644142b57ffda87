// Implements rematch doctor. In a build without LibTorch, without_libtorch.cpp implements it
// instead.
#pragma once

#include "harness/cli/exit_code.h"

namespace rematch {

ExitCode doctor(bool json);

}  // namespace rematch
