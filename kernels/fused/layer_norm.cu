// Forward processes each row once. In backward, the grid is fixed, a block processes many rows of a
// batch, and each thread sums its own columns.
#include "kernels/fused/layer_norm.h"
#include "kernels/op/rows.cuh"

namespace rematch::kernels::cuda {
namespace {

template <typename Sum>
__device__ Sum reciprocal_deviation(Sum squares, const LayerNorm& op) {
  return Sum(1) / sqrt(squares / static_cast<Sum>(op.width) + static_cast<Sum>(op.eps));
}

// T is x's type, U is the type of scale and shift.
template <typename T, typename U, int kCount, typename Shape>
__global__ void __launch_bounds__(kThreads) rematch_layer_norm_forward(LayerNorm op) {
  using Sum = SumOf<T>;
  const std::int64_t row = std::int64_t{blockIdx.x} * Shape::kRows + threadIdx.x / Shape::kGroup;
  const Columns<kCount, Shape> own(row < op.batch * op.rows ? op.width : 0);
  const std::int64_t batch = row / op.rows;
  const T* x = static_cast<const T*>(op.x) + row * op.width;
  const U* scale = static_cast<const U*>(op.scale) + batch * op.scale_stride;
  const U* shift = static_cast<const U*>(op.shift) + batch * op.shift_stride;
  T* y = static_cast<T*>(op.y) + row * op.width;
  Lanes<T, kCount> kept[Shape::kKept];
  Sum sum = 0;
  own.for_each([&](int at, int i) {
    kept[at] = load_lanes<kCount>(x + i);
    for (int lane = 0; lane < kCount; ++lane) sum += kept[at][lane];
  });
  const Sum mean = group_sum<Shape::kGroup>(sum) / static_cast<Sum>(op.width);
  Sum squares = 0;
  own.for_each([&](int at, int i) {
    if (!Shape::kKeeps) kept[at] = load_lanes<kCount>(x + i);
    for (int lane = 0; lane < kCount; ++lane) {
      squares += (kept[at][lane] - mean) * (kept[at][lane] - mean);
    }
  });
  const Sum reciprocal = reciprocal_deviation(group_sum<Shape::kGroup>(squares, /*turn=*/1), op);
  own.for_each([&](int at, int i) {
    if (!Shape::kKeeps) kept[at] = load_lanes<kCount>(x + i);
    const auto scales = load_lanes<kCount>(scale + i);
    const auto shifts = load_lanes<kCount>(shift + i);
    Sum values[kCount];
    for (int lane = 0; lane < kCount; ++lane) {
      const Sum factor = static_cast<Sum>(op.offset) + scales[lane];
      values[lane] = (kept[at][lane] - mean) * reciprocal * factor + shifts[lane];
    }
    store_lanes(values, y + i);
  });
}

// Sums over one row of the squares of x - mean, of g = grad_y * (offset + scale), and of
// g * (x - mean).
template <typename Sum>
struct CentredSums {
  Sum squares, weighted, products;
};

// Uses the formulas of the CPU kernel. If the shape keeps elements, a thread loads its scale once.
// If not, it keeps its column sums in memory.
template <typename T, typename U, int kCount, typename Shape>
__global__ void __launch_bounds__(kThreads)
    rematch_layer_norm_backward(LayerNormBackward op, std::int64_t blocks_in_batch) {
  using Sum = SumOf<T>;
  constexpr bool kKeeps = Shape::kKeeps;
  constexpr int kSums = Shape::kKept * kCount;
  const LayerNorm& shape = op.forward;
  const Columns<kCount, Shape> columns(shape.width);
  const auto num_columns = static_cast<Sum>(shape.width);
  const std::int64_t batch = blockIdx.x / blocks_in_batch;
  const U* scale = static_cast<const U*>(shape.scale) + batch * shape.scale_stride;
  Sum* scale_partial = static_cast<Sum*>(op.partial) + blockIdx.x * shape.width;
  Sum* shift_partial = scale_partial + shape.batch * blocks_in_batch * shape.width;
  Sum sums[2 * kSums] = {};  // of scale, then of shift
  // Moves the sums of one access between registers and memory.
  const auto store_sums = [&](int at, int i) {
    Sum values[kCount];
    for (int lane = 0; lane < kCount; ++lane) values[lane] = sums[at * kCount + lane];
    store_lanes(values, scale_partial + i);
    for (int lane = 0; lane < kCount; ++lane) values[lane] = sums[kSums + at * kCount + lane];
    store_lanes(values, shift_partial + i);
  };
  const auto load_sums = [&](int at, int i) {
    Sum values[kCount];
    load_lanes(scale_partial + i, values);
    for (int lane = 0; lane < kCount; ++lane) sums[at * kCount + lane] = values[lane];
    load_lanes(shift_partial + i, values);
    for (int lane = 0; lane < kCount; ++lane) sums[kSums + at * kCount + lane] = values[lane];
  };
  Lanes<T, kCount> kept_x[Shape::kKept];
  Lanes<T, kCount> kept_grads[Shape::kKept];
  Lanes<U, kCount> scales[Shape::kKept];
  const auto load_scale = [&](int at, int i) { scales[at] = load_lanes<kCount>(scale + i); };
  if constexpr (kKeeps) {
    columns.for_each(load_scale);
  } else {
    columns.for_each(store_sums);
  }
  const std::int64_t stride = blocks_in_batch * Shape::kRows;
  const int group = static_cast<int>(threadIdx.x) / Shape::kGroup;
  // All groups of a block make the same number of turns, because they meet at barriers.
  for (std::int64_t base = blockIdx.x % blocks_in_batch * Shape::kRows; base < shape.rows;
       base += stride) {
    const std::int64_t row = base + group;
    const Columns<kCount, Shape> own(row < shape.rows ? shape.width : 0);
    const std::int64_t place = (batch * shape.rows + row) * shape.width;
    const T* x = static_cast<const T*>(shape.x) + place;
    const T* grad_y = static_cast<const T*>(op.grad_y) + place;
    T* grad_x = static_cast<T*>(op.grad_x) + place;
    const auto load_row = [&](int at, int i) {
      kept_x[at] = load_lanes<kCount>(x + i);
      kept_grads[at] = load_lanes<kCount>(grad_y + i);
    };
    Sum sum = 0;
    own.for_each([&](int at, int i) {
      load_row(at, i);
      for (int lane = 0; lane < kCount; ++lane) sum += kept_x[at][lane];
    });
    const Sum mean = group_sum<Shape::kGroup>(sum) / num_columns;
    CentredSums<Sum> of_row = {0, 0, 0};
    own.for_each([&](int at, int i) {
      if (!kKeeps) {
        load_row(at, i);
        load_scale(at, i);
      }
      for (int lane = 0; lane < kCount; ++lane) {
        const Sum centred = kept_x[at][lane] - mean;
        const Sum weighted =
            kept_grads[at][lane] * (static_cast<Sum>(shape.offset) + scales[at][lane]);
        of_row.squares += centred * centred;
        of_row.weighted += weighted;
        of_row.products += weighted * centred;
      }
    });
    of_row = group_reduce<Shape::kGroup>(of_row, [](const auto& a, const auto& b) {
      return CentredSums<Sum>{a.squares + b.squares, a.weighted + b.weighted,
                              a.products + b.products};
    });
    const Sum r = reciprocal_deviation(of_row.squares, shape);
    const Sum mean_weighted = of_row.weighted / num_columns;
    const Sum slope = of_row.products * r * r / num_columns;
    own.for_each([&](int at, int i) {
      if (!kKeeps) {
        load_row(at, i);
        load_scale(at, i);
        load_sums(at, i);
      }
      Sum gradients[kCount];
      for (int lane = 0; lane < kCount; ++lane) {
        const Sum centred = kept_x[at][lane] - mean;
        const Sum grad = kept_grads[at][lane];
        const Sum weighted = grad * (static_cast<Sum>(shape.offset) + scales[at][lane]);
        sums[at * kCount + lane] += grad * centred * r;
        sums[kSums + at * kCount + lane] += grad;
        gradients[lane] = (weighted - mean_weighted - centred * slope) * r;
      }
      store_lanes(gradients, grad_x + i);
      if (!kKeeps) store_sums(at, i);
    });
  }
  if constexpr (kKeeps) {
    if (add_over_groups<Shape::kGroup>(sums)) columns.for_each(store_sums);
  }
}

}  // namespace

int run(const LayerNorm& op, void* stream) {
  const std::int64_t num_rows = op.batch * op.rows;
  if (num_rows == 0) return cudaSuccess;
  const auto on = static_cast<cudaStream_t>(stream);
  with_table_type(op.element, op.table_element, [&](auto* x, auto* table) {
    using T = std::remove_pointer_t<decltype(x)>;
    using U = std::remove_pointer_t<decltype(table)>;
    const bool wide = are_multiples(kLanes<T>, op.width, op.scale_stride, op.shift_stride) &&
                      are_aligned(op.x, op.scale, op.shift, op.y);
    with_lanes<T>(wide, [&](auto lanes) {
      constexpr int kCount = lanes;
      with_row_shape<kCount>(op.width, [&](auto shape) {
        using Shape = decltype(shape);
        const unsigned blocks = blocks_for_rows<Shape>(num_rows);
        rematch_layer_norm_forward<T, U, kCount, Shape><<<blocks, kThreads, 0, on>>>(op);
      });
    });
  });
  return cudaGetLastError();
}

int run(const LayerNormBackward& op, void* stream) {
  const LayerNorm& shape = op.forward;
  const std::int64_t blocks_in_batch = num_sum_blocks(shape.rows);
  const auto num_blocks = static_cast<unsigned>(shape.batch * blocks_in_batch);
  if (num_blocks == 0 || shape.width == 0) return cudaSuccess;
  const auto on = static_cast<cudaStream_t>(stream);
  with_table_type(shape.element, shape.table_element, [&](auto* x, auto* table) {
    using T = std::remove_pointer_t<decltype(x)>;
    using U = std::remove_pointer_t<decltype(table)>;
    const bool wide = are_multiples(kLanes<T>, shape.width, shape.scale_stride) &&
                      are_aligned(shape.x, shape.scale, op.grad_y, op.grad_x);
    with_lanes<T>(wide, [&](auto lanes) {
      constexpr int kCount = lanes;
      with_row_shape<kCount>(shape.width, [&](auto row_shape) {
        using Shape = decltype(row_shape);
        rematch_layer_norm_backward<T, U, kCount, Shape>
            <<<num_blocks, kThreads, 0, on>>>(op, blocks_in_batch);
      });
    });
    const dim3 sums = table_sum_grid(shape.batch, shape.width);
    const auto* scale_partial = static_cast<const SumOf<U>*>(op.partial);
    const auto* shift_partial = scale_partial + shape.batch * blocks_in_batch * shape.width;
    rematch_add_partial_sums<U><<<sums, kThreads, 0, on>>>(
        scale_partial, blocks_in_batch, shape.width, static_cast<U*>(op.grad_scale));
    rematch_add_partial_sums<U><<<sums, kThreads, 0, on>>>(
        shift_partial, blocks_in_batch, shape.width, static_cast<U*>(op.grad_shift));
  });
  return cudaGetLastError();
}

}  // namespace rematch::kernels::cuda
