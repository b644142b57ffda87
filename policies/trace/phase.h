// The parts of a training step that counts, times and peaks are split by.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace rematch {

enum class Phase : std::uint8_t { kForward, kRecompute, kBackward, kOptimizer };

inline constexpr std::array kPhases = {Phase::kForward, Phase::kRecompute, Phase::kBackward,
                                       Phase::kOptimizer};
inline constexpr int kNumPhases = kPhases.size();

constexpr std::string_view to_string(Phase phase) {
  constexpr std::string_view kNames[] = {"forward", "recompute", "backward", "optimizer"};
  return kNames[static_cast<int>(phase)];
}

}  // namespace rematch
