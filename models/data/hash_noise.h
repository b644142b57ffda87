// Pseudo-random numbers for synthetic data. Each number depends only on (seed, stream, step,
// index), so elements can be computed in any order, and in any language.
#pragma once

#include <cstdint>
#include <string_view>

#include "models/layers/hash.h"

namespace rematch {

// Returns the hash counter of a stream's first element at a step. Element i uses this counter plus
// i.
constexpr std::uint64_t stream_counter(std::uint64_t seed, std::string_view stream,
                                       std::int64_t step) {
  return splitmix64(splitmix64(seed ^ fnv1a64(stream)) ^ static_cast<std::uint64_t>(step));
}

// Approximates a standard normal with mean 0 and variance 1, within +-4.9. Sums the eight 16-bit
// lanes of two hashes and centres the sum, which is exact in float32. Then multiplies by sqrt(12 /
// 8) / 65536, rounded to float32.
constexpr float hash_to_normal(std::uint64_t counter) {
  constexpr float kScale = 0x1.3988e2p-16F;
  const std::uint64_t hashes[] = {splitmix64(counter), splitmix64(~counter)};
  std::int32_t sum = 0;
  for (const std::uint64_t hash : hashes) {
    for (int lane = 0; lane < 4; ++lane) {
      sum += static_cast<std::int32_t>((hash >> (16 * lane)) & 0xFFFF);
    }
  }
  constexpr std::int32_t kMean = 8 * 65535 / 2;
  return static_cast<float>(sum - kMean) * kScale;
}

// Returns a uniform number in (0, 1): an odd multiple of 2^-24, exact in float32, never 0 or 1.
constexpr float hash_to_open_unit(std::uint64_t hash) {
  return static_cast<float>(2 * static_cast<std::int32_t>(hash >> 41) + 1) * 0x1p-24F;
}

}  // namespace rematch
