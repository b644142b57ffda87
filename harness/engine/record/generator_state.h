// Generator states of ops that draw random numbers: taken before the op, put back for its replay.
#pragma once

#include <optional>

#include "harness/engine/record/record.h"

namespace rematch {

// Whether the op, with the arguments at the end of `stack`, is about to draw from a generator.
bool draws_random(const OpFacts& facts, const torch::jit::Stack& stack);

// The state of the generator this op is about to draw from; empty if it draws nothing. Fused
// attention carries the seeded tag but draws only with dropout.
std::optional<GeneratorState> state_before(const OpFacts& facts, const torch::jit::Stack& stack);

// Sets a generator to a recorded state while it lives, then back to where it was.
class GeneratorStateGuard {
 public:
  explicit GeneratorStateGuard(const GeneratorState& recorded);
  ~GeneratorStateGuard();
  GeneratorStateGuard(const GeneratorStateGuard&) = delete;
  GeneratorStateGuard& operator=(const GeneratorStateGuard&) = delete;

 private:
  GeneratorState previous_;
};

}  // namespace rematch
