// Vector arithmetic for CPU kernels: at::vec, with elements widened to the type in which they are
// summed. Include this header only in sources that are compiled once for each instruction set. Each
// instruction set has its own namespace, so that the linker cannot mix code of different sets.
#pragma once

#include <ATen/Parallel.h>
#include <ATen/cpu/vec/functional.h>
#include <ATen/cpu/vec/vec.h>
#include <c10/util/BFloat16.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "kernels/op/kernel.h"

namespace rematch::kernels::REMATCH_CAPABILITY {

template <typename T>
using SumOf = std::conditional_t<std::is_same_v<T, double>, double, float>;

// A vector of sums, with one sum for each element in a register of the narrowest type in `Types`.
// If one of the types is bfloat16, the sums need two registers of float.
template <typename... Types>
struct WideLanes {
  using Sum = std::common_type_t<SumOf<Types>...>;
  static constexpr int kCount = std::max({at::vec::Vectorized<Types>::size()...});
  static constexpr int kRegisters = kCount / at::vec::Vectorized<Sum>::size();
  using Wide = at::vec::VectorizedN<Sum, kRegisters>;

  // Loads `count` elements. If all `Types` are the same, the remaining lanes are 0; otherwise the
  // remaining lanes are undefined.
  template <typename T>
  static Wide load(const T* from, int count = kCount) {
    if constexpr (std::is_same_v<T, Sum>) {
      return count == kCount ? Wide::loadu(from) : Wide::loadu(from, count);
    } else {
      using Narrow = at::vec::Vectorized<T>;
      const Narrow narrow = count == kCount ? Narrow::loadu(from)
                                            : Narrow::loadu(from, static_cast<std::int16_t>(count));
      return at::vec::convert<Sum, kRegisters, T, 1>(at::vec::VectorizedN<T, 1>(narrow));
    }
  }

  template <typename T>
  static void store(const Wide& wide, T* to, int count = kCount) {
    if constexpr (std::is_same_v<T, Sum>) {
      wide.store(to, count);
    } else {
      at::vec::VectorizedN<T, 1>(at::vec::convert<T, 1, Sum, kRegisters>(wide)).store(to, count);
    }
  }

  // Splits `size` elements into groups and calls f(first element, count) for each group. Every
  // group has kCount elements, except for a shorter last one. After inlining, `count` is a constant
  // in all full groups.
  template <typename Function>
  static void for_each(std::int64_t size, const Function& f) {
    std::int64_t first = 0;
    for (; first + kCount <= size; first += kCount) f(first, kCount);
    if (first < size) f(first, static_cast<int>(size - first));
  }

  static Sum total(const Wide& wide) {
    return at::vec::vec_reduce_all<Sum>([](const auto& a, const auto& b) { return a + b; }, wide);
  }
};

template <typename T>
using Lanes = WideLanes<T>;

// The minimum number of rows per thread. For fewer rows, waking a thread costs more time than it
// saves.
inline std::int64_t row_grain(std::int64_t width) {
  constexpr std::int64_t kElements = 32'768;
  return std::max<std::int64_t>(1, kElements / std::max<std::int64_t>(1, width));
}

// At most kRowsInBlock consecutive rows of one batch. Backward adds up their gradients of a table.
struct RowBlock {
  std::int64_t index;  // place of the block's partial sums
  std::int64_t batch;
  std::int64_t first;  // rows are [first, end), counted over all batches
  std::int64_t end;
};

// Calls f(block) for the blocks of `batch` x `rows` rows, in parallel.
template <typename Function>
void for_each_row_block(std::int64_t batch, std::int64_t rows, std::int64_t width,
                        const Function& f) {
  const std::int64_t blocks_in_batch = num_row_blocks(rows);
  const std::int64_t grain = row_grain(width * kRowsInBlock);
  at::parallel_for(0, batch * blocks_in_batch, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t index = begin; index < end; ++index) {
      const std::int64_t of_batch = index / blocks_in_batch;
      const std::int64_t first = index % blocks_in_batch * kRowsInBlock;
      f(RowBlock{index, of_batch, of_batch * rows + first,
                 of_batch * rows + std::min(rows, first + kRowsInBlock)});
    }
  });
}

// sums[column] = partial[0][column] + partial[1][column] + ..., as T.
template <typename T>
void add_partial_sums(const SumOf<T>* partial, std::int64_t num_blocks, std::int64_t width,
                      T* sums) {
  using L = WideLanes<T, SumOf<T>>;
  at::parallel_for(0, width, row_grain(num_blocks), [&](std::int64_t begin, std::int64_t end) {
    L::for_each(end - begin, [&](std::int64_t i, int count) {
      typename L::Wide sum(0);
      for (std::int64_t block = 0; block < num_blocks; ++block) {
        sum = sum + L::load(partial + block * width + begin + i, count);
      }
      L::store(sum, sums + begin + i, count);
    });
  });
}

// Calls f with a null pointer to the element's type. f uses only the pointer's type.
template <typename Function>
void with_type(Element element, const Function& f) {
  switch (element) {
    case Element::kFloat32:
      return f(static_cast<float*>(nullptr));
    case Element::kBFloat16:
      return f(static_cast<c10::BFloat16*>(nullptr));
    case Element::kFloat64:
      return f(static_cast<double*>(nullptr));
  }
}

// Calls f with two null pointers, whose types are the types of a matrix and of a table that applies
// to its rows. A table of a bfloat16 matrix may be float32; otherwise both have the same type.
template <typename Function>
void with_table_type(Element element, Element table_element, const Function& f) {
  if (element == Element::kBFloat16 && table_element == Element::kFloat32) {
    return f(static_cast<c10::BFloat16*>(nullptr), static_cast<float*>(nullptr));
  }
  with_type(element, [&](auto* type) { f(type, type); });
}

}  // namespace rematch::kernels::REMATCH_CAPABILITY
