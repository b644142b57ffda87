// Shared by the CUDA kernels that work on rows of a matrix: which threads have which rows and
// columns, sums over a row, and sums over the rows of a block. All sums are added in an order that
// depends only on the sizes of the matrix.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "kernels/op/device.cuh"

namespace rematch::kernels::cuda {

inline constexpr int kWarp = 32;

// Words of 32 bits, in which values are passed between the threads of a warp.
template <typename Value>
struct Words {
  std::uint32_t words[sizeof(Value) / sizeof(std::uint32_t)];
};

// Returns the value of the thread whose number in the warp differs in the bits of `mask`.
template <typename Value>
__device__ Value shuffled(const Value& value, int mask) {
  auto words = __builtin_bit_cast(Words<Value>, value);
  for (std::uint32_t& word : words.words) word = __shfl_xor_sync(0xffffffffu, word, mask);
  return __builtin_bit_cast(Value, words);
}

// Combines values over each group of kGroup threads and returns the result to all of them. All
// threads of the block must call this function. `combine` must be commutative, so that all threads
// get the same bits. A group of one warp needs no barrier. Other groups need one barrier and one
// shared slot for each warp. Of two calls in succession with the same types, one must have turn 0
// and the other turn 1, because threads may still read the slots of the first.
template <int kGroup, typename Value, typename Combine>
__device__ Value group_reduce(Value value, const Combine& combine, int turn = 0) {
  for (int mask = kWarp / 2; mask > 0; mask /= 2) value = combine(value, shuffled(value, mask));
  if constexpr (kGroup > kWarp) {
    constexpr int kMaxWarps = 1024 / kWarp;
    constexpr int kWarps = kGroup / kWarp;
    __shared__ Value of_warps[2][kMaxWarps];
    const int warp = static_cast<int>(threadIdx.x) / kWarp;
    if (threadIdx.x % kWarp == 0) of_warps[turn][warp] = value;
    __syncthreads();
    const int first = warp / kWarps * kWarps;
    value = of_warps[turn][first];
    for (int i = 1; i < kWarps; ++i) value = combine(value, of_warps[turn][first + i]);
  }
  return value;
}

template <int kGroup, typename Sum>
__device__ Sum group_sum(Sum value, int turn = 0) {
  return group_reduce<kGroup>(
      value, [](Sum a, Sum b) { return a + b; }, turn);
}

// How a block of kThreads threads shares rows: each row has a group of kGroup threads. If kSteps is
// above 0, a thread makes at most kSteps accesses per row, and its elements stay in registers. If
// kSteps is 0, a thread makes any number of accesses and loads its elements again for each use.
template <int kGroupThreads, int kAccesses>
struct RowShape {
  static constexpr int kGroup = kGroupThreads;
  static constexpr int kSteps = kAccesses;
  static constexpr int kRows = kThreads / kGroup;  // rows that a block processes at once
  static constexpr bool kKeeps = kSteps > 0;
  static constexpr int kKept = kKeeps ? kSteps : 1;
};

// Calls f with the RowShape for rows of `width` elements. Narrow rows have one warp each, so that
// no thread is idle and sums need no barrier. Models seldom have rows of float64 or of elements
// that are not aligned. Such rows have one shape, because every shape takes seconds to compile.
template <int kCount, typename Function>
void with_row_shape(std::int64_t width, const Function& f) {
  const std::int64_t accesses = (width + kCount - 1) / kCount;
  if constexpr (kCount > kLanes<double>) {
    if (accesses <= 2 * kWarp) return f(RowShape<kWarp, 2>());
    if (accesses <= 6 * kWarp) return f(RowShape<kWarp, 6>());
    if (accesses <= 8 * kWarp) return f(RowShape<2 * kWarp, 4>());
    if (accesses <= 16 * kWarp) return f(RowShape<4 * kWarp, 4>());
  }
  if (accesses <= 32 * kWarp) return f(RowShape<8 * kWarp, 4>());
  f(RowShape<8 * kWarp, 0>());
}

// The number of blocks for `rows` rows, if a block's rows are only those that it processes at once.
template <typename Shape>
unsigned blocks_for_rows(std::int64_t rows) {
  return static_cast<unsigned>((rows + Shape::kRows - 1) / Shape::kRows);
}

// The elements of a row that belong to this thread of the row's group: every access of kCount
// elements.
template <int kCount, typename Shape>
struct Columns {
  static constexpr int kStride = Shape::kGroup * kCount;

  __device__ explicit Columns(std::int64_t row_width)
      : width(static_cast<int>(row_width)),
        column(static_cast<int>(threadIdx.x) % Shape::kGroup * kCount) {}

  // Calls f(register, first element) for each access. A loop with a constant number of steps is
  // unrolled, so that the compiler can keep arrays in registers.
  template <typename Function>
  __device__ void for_each(const Function& f) const {
    if constexpr (Shape::kKeeps) {
#pragma unroll
      for (int step = 0; step < Shape::kSteps; ++step) {
        const int first = column + step * kStride;
        if (first < width) f(step, first);
      }
    } else {
      for (int first = column; first < width; first += kStride) f(0, first);
    }
  }

  int width, column;
};

// The largest number of blocks that add partial sums of columns: two for each multiprocessor of an
// H100 or H200. A constant, so that bits do not depend on the card. Each block processes many rows,
// because a partial sum is written and read again.
inline constexpr std::int64_t kMaxSumBlocks = 264;

// The number of blocks of a backward kernel whose blocks process whole rows. At most
// num_row_blocks(rows), for which the op allocates partial sums.
inline std::int64_t num_sum_blocks(std::int64_t rows) {
  return std::min(num_row_blocks(rows), kMaxSumBlocks);
}

// Adds each thread's kNum sums over the groups of a block, one group after another, so that the
// last group has the totals. Returns whether this thread is in the last group. All threads of the
// block must call this function, and each kernel only once. A thread's sums belong to the same
// columns as those of the thread with the same place in the other groups.
template <int kGroup, typename Sum, int kNum>
__device__ bool add_over_groups(Sum (&sums)[kNum]) {
  constexpr int kGroups = kThreads / kGroup;
  if constexpr (kGroups == 1) {
    return true;
  } else {
    __shared__ Sum shared[kNum * kGroup];
    const int group = static_cast<int>(threadIdx.x) / kGroup;
    Sum* const own = shared + threadIdx.x % kGroup;
    for (int turn = 0; turn < kGroups; ++turn) {
      if (turn > 0) __syncthreads();
      if (group != turn) continue;
      for (int i = 0; i < kNum; ++i) {
        if (turn > 0) sums[i] += own[i * kGroup];
        if (turn + 1 < kGroups) own[i * kGroup] = sums[i];
      }
    }
    return group + 1 == kGroups;
  }
}

// Note [Columns in blocks] A backward kernel that only sums over rows (gated_add, modulate) has
// blocks of kColumnRows warps. A block covers kWarp * kCount columns, and each warp has its own
// rows. The warps' sums are added in shared memory, so there are few partial sums.
inline constexpr int kColumnRows = kThreads / kWarp;

// The place of a thread in such a kernel, whose grid is column_grid().
template <int kCount>
struct ColumnPlace {
  __device__ ColumnPlace(std::int64_t num_blocks, std::int64_t width)
      : batch(blockIdx.x / num_blocks),
        first_row(blockIdx.x % num_blocks * kColumnRows + threadIdx.x / kWarp),
        row_stride(num_blocks * kColumnRows),
        column((std::int64_t{blockIdx.y} * kWarp + threadIdx.x % kWarp) * kCount),
        is_used(column < width) {}

  std::int64_t batch, first_row, row_stride, column;
  bool is_used;  // false beyond the last column
};

// The number of partial sums of each column and batch. Depends on the sizes alone: not on kCount,
// which depends on alignment, and not on the card. At most num_row_blocks(rows). About four blocks
// per multiprocessor of an H100 are in flight.
inline std::int64_t num_column_blocks(std::int64_t batch, std::int64_t rows, std::int64_t width) {
  constexpr std::int64_t kWidth = 256;  // columns of a block in bfloat16
  const std::int64_t across = std::max<std::int64_t>(1, batch * ((width + kWidth - 1) / kWidth));
  return std::clamp<std::int64_t>(2 * kMaxSumBlocks / across, 1,
                                  std::max<std::int64_t>(1, num_row_blocks(rows)));
}

template <int kCount>
dim3 column_grid(std::int64_t batch, std::int64_t num_blocks, std::int64_t width) {
  constexpr std::int64_t kColumns = std::int64_t{kWarp} * kCount;
  return dim3(static_cast<unsigned>(batch * num_blocks),
              static_cast<unsigned>((width + kColumns - 1) / kColumns));
}

// The grid of rematch_add_partial_sums for a table with one row per batch.
inline dim3 table_sum_grid(std::int64_t batch, std::int64_t width) {
  return dim3(sum_blocks_for(width), static_cast<unsigned>(batch));
}

}  // namespace rematch::kernels::cuda
