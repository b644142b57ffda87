// Saves the generator states of ops that draw random numbers. A state is saved before the op runs,
// and restored for the op's replay.
#pragma once

#include <optional>

#include "harness/engine/record/record.h"

namespace rematch {

// Returns whether this call of the op will draw random numbers. `stack` ends with the op's
// arguments.
bool draws_random(const OpFacts& facts, const torch::jit::Stack& stack);

// The state of the generator that the op is about to use; empty if the op draws no random numbers.
// Fused attention is tagged nondeterministic_seeded, but draws random numbers only with dropout.
std::optional<GeneratorState> state_before(const OpFacts& facts, const torch::jit::Stack& stack);

// Sets a generator to a recorded state. The destructor restores the previous state.
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
