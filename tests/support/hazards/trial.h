// Compares runs under the engine with the run without the engine.
#pragma once

#include <optional>
#include <string>

#include "tests/support/hazards/training.h"

namespace rematch::testing::hazards {

// Installs the counting allocators and limits each small model to one thread. Call this first.
void prepare_process();

// The recorded results of a run, or the error that ended it.
struct Trial {
  std::optional<Facts> facts;
  std::string error;  // the error's message, without a stack trace
};

Trial try_to_train(const Hazard& hazard, const Checkpoint* checkpoint,
                   Backward backward = Backward::kOnce, int steps = kSteps);

// Returns an empty string if `engine` equals `plain` bitwise, or if both ended with an error.
std::string verdict_on(const Trial& plain, const Trial& engine);

}  // namespace rematch::testing::hazards
