// rematch predict --model. Without LibTorch, without_libtorch.cpp defines it.
#pragma once

#include "harness/cli/exit_code.h"

namespace rematch {

struct PredictFlags;

ExitCode predict_model(const PredictFlags& flags);

}  // namespace rematch
