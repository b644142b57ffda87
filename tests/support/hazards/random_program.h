// Random layers that mix values, views, in-place writes, random draws, no-grad sections and side
// effects in any order. Plain autograd rejects some of these layers; the engine must reject them
// too.
#pragma once

#include <cstdint>

#include "tests/support/hazards/hazard.h"

namespace rematch::testing::hazards {

// The same seed gives the same layers.
Hazard random_program(std::uint32_t seed);

// Runs the layers of `even` in even steps and the layers of `odd` in odd steps.
Hazard alternating(const Hazard& even, const Hazard& odd);

}  // namespace rematch::testing::hazards
