// Counter-based pseudo-random integers, identical in every language and on every machine.
// Parameters and synthetic data are made from these integers. Random ops in training, such as
// dropout, do not use them.
#pragma once

#include <cstdint>
#include <string_view>

namespace rematch {

// Returns the 64-bit FNV-1a hash of the bytes of `text`.
constexpr std::uint64_t fnv1a64(std::string_view text) {
  std::uint64_t hash = 14695981039346656037ULL;
  for (const char character : text) {
    hash ^= static_cast<unsigned char>(character);
    hash *= 1099511628211ULL;
  }
  return hash;
}

// Returns the output of the SplitMix64 generator whose state is `counter` before the draw.
constexpr std::uint64_t splitmix64(std::uint64_t counter) {
  std::uint64_t mixed = counter + 0x9E3779B97F4A7C15ULL;
  mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9ULL;
  mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBULL;
  return mixed ^ (mixed >> 31);
}

// Returns a uniform number in [-1, 1), a multiple of 2^-23, which is exact in float32.
constexpr float hash_to_signed_unit(std::uint64_t hash) {
  const auto top = static_cast<std::int32_t>(hash >> 40);  // uses the top 24 bits
  return static_cast<float>(top - (1 << 23)) * 0x1p-23F;
}

}  // namespace rematch
