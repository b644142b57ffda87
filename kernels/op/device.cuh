// Shared by the CUDA kernels of fused ops: loads that widen elements to the type of sums, and sums
// of partial sums. Values are added in a fixed order, so that results repeat exactly. A
// kernel's name begins with rematch_ and says what the kernel does. Profilers record only the name,
// and the kernel's class is derived from it.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/op/kernel.h"

// Tests run the kernels on the host and count the bytes that these functions read and write.
#ifndef REMATCH_COUNT_READ
#define REMATCH_COUNT_READ(bytes) static_cast<void>(0)
#define REMATCH_COUNT_WRITTEN(bytes) static_cast<void>(0)
#endif

namespace rematch::kernels::cuda {

inline constexpr int kThreads = 256;  // threads in every block; a power of two

template <typename T>
using SumOf = std::conditional_t<std::is_same_v<T, double>, double, float>;

template <typename T>
__device__ SumOf<T> widened(T value) {
  if constexpr (std::is_same_v<T, __nv_bfloat16>) {
    return __bfloat162float(value);
  } else {
    return value;
  }
}

template <typename T, typename Sum>
__device__ T narrowed(Sum value) {
  if constexpr (std::is_same_v<T, __nv_bfloat16>) {
    return __float2bfloat16(value);
  } else {
    return value;
  }
}

template <typename T>
__device__ SumOf<T> load(const T* from) {
  REMATCH_COUNT_READ(sizeof(T));
  return widened(*from);
}

template <typename T, typename Sum>
__device__ void store(Sum value, T* to) {
  REMATCH_COUNT_WRITTEN(sizeof(T));
  *to = narrowed<T>(value);
}

// The number of elements that one access of 16 bytes moves.
template <typename T>
inline constexpr int kLanes = 16 / static_cast<int>(sizeof(T));

// The alignment of a group of kCount elements. A group of more than 16 bytes is moved by several
// accesses.
template <typename T, int kCount>
inline constexpr std::size_t kAlignment = kCount * sizeof(T) < 16 ? kCount * sizeof(T) : 16;

// kCount elements as they are stored in memory.
template <typename T, int kCount>
struct alignas(kAlignment<T, kCount>) Lanes {
  T lanes[kCount];
  __device__ SumOf<T> operator[](int lane) const { return widened(lanes[lane]); }
};

// The bfloat16 version holds two elements in each 32-bit register. With an array of elements, the
// compiler would give each element its own register. The bits of a bfloat16 are the upper half of
// the bits of a float.
template <>
struct alignas(16) Lanes<__nv_bfloat16, kLanes<__nv_bfloat16>> {
  std::uint32_t pairs[kLanes<__nv_bfloat16> / 2];
  __device__ float operator[](int lane) const {
    const std::uint32_t pair = pairs[lane / 2];
    return __builtin_bit_cast(float, lane % 2 == 0 ? pair << 16 : pair & 0xffff0000u);
  }
};

// Loads kCount elements. `from` must be aligned to kAlignment.
template <int kCount, typename T>
__device__ Lanes<T, kCount> load_lanes(const T* from) {
  REMATCH_COUNT_READ(kCount * sizeof(T));
  return *reinterpret_cast<const Lanes<T, kCount>*>(from);
}

template <int kCount, typename T>
__device__ void load_lanes(const T* from, SumOf<T> (&to)[kCount]) {
  const Lanes<T, kCount> lanes = load_lanes<kCount>(from);
  for (int lane = 0; lane < kCount; ++lane) to[lane] = lanes[lane];
}

template <typename T, int kCount>
struct alignas(kAlignment<T, kCount>) StoredLanes {
  T lanes[kCount];
};

template <typename T, int kCount, typename Sum>
__device__ StoredLanes<T, kCount> narrowed_lanes(const Sum (&from)[kCount]) {
  StoredLanes<T, kCount> stored;
  for (int lane = 0; lane < kCount; ++lane) stored.lanes[lane] = narrowed<T>(from[lane]);
  return stored;
}

// Stores kCount elements and returns them as they are stored.
template <int kCount, typename T, typename Sum>
__device__ Lanes<T, kCount> store_lanes(const Sum (&from)[kCount], T* to) {
  REMATCH_COUNT_WRITTEN(kCount * sizeof(T));
  const auto stored = narrowed_lanes<T>(from);
  *reinterpret_cast<StoredLanes<T, kCount>*>(to) = stored;
  return __builtin_bit_cast(Lanes<T, kCount>, stored);
}

// Whether all pointers are aligned to 16 bytes. Null counts as aligned, because it is not read.
template <typename... Pointers>
bool are_aligned(const Pointers*... pointers) {
  return ((reinterpret_cast<std::uintptr_t>(pointers) % 16 == 0) && ...);
}

template <typename... Sizes>
bool are_multiples(int factor, Sizes... sizes) {
  return ((sizes % factor == 0) && ...);
}

// Calls f with the number of elements that one access moves: 16 bytes of elements if `wide`,
// otherwise one element.
template <typename T, typename Function>
void with_lanes(bool wide, const Function& f) {
  if (wide) return f(std::integral_constant<int, kLanes<T>>());
  f(std::integral_constant<int, 1>());
}

// number of columns that one block sums; equals the width of a warp
inline constexpr int kSumColumns = 32;

// sums[set][column] = partial[set][0][column] + partial[set][1][column] + ..., as T, in a fixed
// order. Each warp adds every kWarps-th partial sum. The first warp then adds the warps' results.
template <typename T>
__global__ void rematch_add_partial_sums(const SumOf<T>* partial, std::int64_t num_blocks,
                                         std::int64_t width, T* sums) {
  constexpr int kWarps = kThreads / kSumColumns;
  __shared__ SumOf<T> of_warps[kThreads];
  const int lane = static_cast<int>(threadIdx.x) % kSumColumns;
  const std::int64_t column = std::int64_t{blockIdx.x} * kSumColumns + lane;
  const std::int64_t set = blockIdx.y;
  const SumOf<T>* const first = partial + set * num_blocks * width + column;
  SumOf<T> sum = 0;
  if (column < width) {
#pragma unroll 8
    for (std::int64_t block = threadIdx.x / kSumColumns; block < num_blocks; block += kWarps) {
      sum += load(first + block * width);
    }
  }
  of_warps[threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x >= kSumColumns || column >= width) return;
  for (int warp = 1; warp < kWarps; ++warp) sum += of_warps[warp * kSumColumns + lane];
  store(sum, sums + set * width + column);
}

inline unsigned sum_blocks_for(std::int64_t width) {
  return static_cast<unsigned>((width + kSumColumns - 1) / kSumColumns);
}

inline unsigned blocks_for(std::int64_t size) {
  return static_cast<unsigned>((size + kThreads - 1) / kThreads);
}

// Calls f with a null pointer to the element's type. f uses only the pointer's type.
template <typename Function>
void with_type(Element element, const Function& f) {
  switch (element) {
    case Element::kFloat32:
      return f(static_cast<float*>(nullptr));
    case Element::kBFloat16:
      return f(static_cast<__nv_bfloat16*>(nullptr));
    case Element::kFloat64:
      return f(static_cast<double*>(nullptr));
  }
}

// Calls f with two null pointers, whose types are the types of a matrix and of a table that applies
// to its rows. A table of a bfloat16 matrix may be float32; otherwise both have the same type.
template <typename Function>
void with_table_type(Element element, Element table_element, const Function& f) {
  if (element == Element::kBFloat16 && table_element == Element::kFloat32) {
    return f(static_cast<__nv_bfloat16*>(nullptr), static_cast<float*>(nullptr));
  }
  with_type(element, [&](auto* type) { f(type, type); });
}

}  // namespace rematch::kernels::cuda
