// The phases of a training step. Counts, times and peaks are reported by phase.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "policies/base/words.h"

namespace rematch {

enum class Phase : std::uint8_t { kForward, kRecompute, kBackward, kOptimizer };

inline constexpr int kNumPhases = 4;

template <>
inline constexpr std::array<std::string_view, kNumPhases> kWords<Phase> = {"forward", "recompute",
                                                                           "backward", "optimizer"};
inline constexpr std::array kPhases = kAll<Phase>;

}  // namespace rematch
