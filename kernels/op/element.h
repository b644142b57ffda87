// Element types of fused ops, for sources that see no LibTorch header.
#pragma once

#include <cstdint>

namespace rematch::kernels {

enum class Element : std::uint8_t { kFloat32, kBFloat16, kFloat64 };

// The rows whose sums over columns are made together, one partial sum each; fixed, so that bits do
// not depend on the number of threads.
inline constexpr std::int64_t kRowsInBlock = 32;

inline std::int64_t num_row_blocks(std::int64_t rows) {
  return (rows + kRowsInBlock - 1) / kRowsInBlock;
}

}  // namespace rematch::kernels
