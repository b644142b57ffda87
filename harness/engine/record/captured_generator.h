// Saves and restores a CUDA generator while its stream is captured into a CUDA graph. LibTorch
// prohibits get_state() and set_state() there, because the offset is only known when the graph is
// launched. A captured op draws at the launch's offset plus a number that is fixed at capture. Two
// ops with the same number draw the same values in every launch.
#pragma once

#include <ATen/core/Generator.h>

#include <optional>

#include "harness/engine/record/record.h"

namespace rematch {

// Weak symbols: null in programs that are not linked with CUDA. The caller holds the generator's
// lock.

// Returns nothing if the current stream is not captured.
[[gnu::weak]] std::optional<CapturedGeneratorState> captured_generator_state(
    const at::Generator& generator);

// The current stream must be captured.
[[gnu::weak]] void set_captured_generator_state(const at::Generator& generator,
                                                const CapturedGeneratorState& state);

}  // namespace rematch
