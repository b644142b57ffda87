// A matrix product, for the stand-ins of cuBLAS and cuBLASLt.
#pragma once

#include <cstdint>
#include <cstdio>

#include "harness/dry_cuda/dry_cuda.h"

namespace dry_cuda {

// Some values of cudaDataType. Kernel names contain only these types.
enum class DataType : int {
  kFloat32 = 0,
  kFloat64 = 1,
  kFloat16 = 2,
  kComplex64 = 4,
  kComplex128 = 5,
  kBFloat16 = 14,
  kFloat8E4M3 = 28,
  kFloat8E5M2 = 29,
};

inline const char* name_of(DataType type) {
  switch (type) {
    case DataType::kFloat32:
      return "f32";
    case DataType::kFloat64:
      return "f64";
    case DataType::kFloat16:
      return "f16";
    case DataType::kComplex64:
      return "c64";
    case DataType::kComplex128:
      return "c128";
    case DataType::kBFloat16:
      return "bf16";
    case DataType::kFloat8E4M3:
      return "e4m3";
    case DataType::kFloat8E5M2:
      return "e5m2";
  }
  return "other";
}

// `batch` products of an m x k matrix with a k x n matrix.
struct ProductSizes {
  std::int64_t m, n, k, batch;
};

// Launches one kernel, such as "dry_gemm_bf16_m512_n256_k1024_b1". The real libraries may launch
// several. Returns the library's error code: 0, or a code that a test planted.
inline int launch_product(const char* kind, void* stream, DataType type, ProductSizes sizes) {
  if (const int code = dry_cuda_planted(kind)) return code;
  constexpr std::int64_t kTile = 128;
  constexpr std::uint32_t kThreads = 384;
  char name[128];
  std::snprintf(name, sizeof name, "dry_%s_%s_m%lld_n%lld_k%lld_b%lld", kind, name_of(type),
                static_cast<long long>(sizes.m), static_cast<long long>(sizes.n),
                static_cast<long long>(sizes.k), static_cast<long long>(sizes.batch));
  const auto tiles = [](std::int64_t size) {
    return static_cast<std::uint32_t>((size + kTile - 1) / kTile);
  };
  const std::uint32_t grid[3] = {tiles(sizes.m), tiles(sizes.n),
                                 static_cast<std::uint32_t>(sizes.batch)};
  const std::uint32_t block[3] = {kThreads, 1, 1};
  dry_cuda_launch(name, grid, block, 0, stream);
  return 0;
}

}  // namespace dry_cuda
