// Steps before any figure.
#pragma once

#include <cstdint>

#include "harness/training/pass_position.h"
#include "harness/training/training.h"

namespace rematch {

// The optimizer's state is born in the first step, and the second is the first to allocate as all
// later ones do.
inline constexpr int kWarmUpSteps = 2;

void warm_up(Training& training, std::int64_t first_step, int num_steps, PassPosition& position);

}  // namespace rematch
