// Random layers: values, views, writes in place, draws, islands without a gradient and side
// effects in any order. Some do what plain autograd refuses; the engine must refuse those too.
#pragma once

#include <cstdint>

#include "tests/support/hazards/hazard.h"

namespace rematch::testing::hazards {

// The same seed gives the same layers.
Hazard random_program(std::uint32_t seed);

// Runs the layers of `even` in even steps and those of `odd` in odd ones.
Hazard alternating(const Hazard& even, const Hazard& odd);

}  // namespace rematch::testing::hazards
