// Holds runs under the engine to the run without it.
#pragma once

#include <optional>
#include <string>

#include "tests/support/hazards/training.h"

namespace rematch::testing::hazards {

// Counts bytes, and leaves small models to one thread each. Call first.
void prepare_process();

// A run's facts, or why it ended.
struct Trial {
  std::optional<Facts> facts;
  std::string error;  // without a stack trace
};

Trial try_to_train(const Hazard& hazard, const Checkpoint* checkpoint,
                   Backward backward = Backward::kOnce, int steps = kSteps);

// Empty: `engine` has the bits of `plain`, or both ended with an error.
std::string verdict_on(const Trial& plain, const Trial& engine);

}  // namespace rematch::testing::hazards
