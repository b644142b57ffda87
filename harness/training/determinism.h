// Whether repeated runs must give bitwise equal results. Does not need LibTorch.
#pragma once

#include <cstdint>

namespace rematch {

// On a GPU, kRepeatableBits excludes the fastest kernels of some ops. CPU kernels are always
// deterministic.
enum class Determinism : std::uint8_t { kRepeatableBits, kFastest };

}  // namespace rematch
