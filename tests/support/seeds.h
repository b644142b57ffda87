// The number of seeds that a randomized test runs. REMATCH_SEEDS=3000 runs 3000 seeds where 300 are
// usual, and scales other counts by the same factor. scripts/test --deep sets this variable.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>

namespace rematch::testing {

inline std::uint32_t num_seeds(std::uint32_t usual) {
  constexpr std::uint32_t kUsual = 300;
  const char* asked = std::getenv("REMATCH_SEEDS");
  const auto wanted = asked == nullptr ? 0 : static_cast<std::uint32_t>(std::atoi(asked));
  return usual * std::max<std::uint32_t>(1, wanted / kUsual);
}

// Returns whether many more cases than usual were asked for. Tests then also run the cases that
// they normally skip to save time.
inline bool is_deep() { return num_seeds(1) > 1; }

}  // namespace rematch::testing
