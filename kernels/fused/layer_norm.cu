// Forward has one block of threads per row. In backward, a block processes every num_row_blocks-th
// row of a batch, and each thread sums its own columns.
#include "kernels/fused/layer_norm.h"
#include "kernels/op/device.cuh"

namespace rematch::kernels::cuda {
namespace {

// A thread's share of the rows: every access of kCount elements that begins at its own columns. If
// kSteps is above 0, the thread makes at most kSteps accesses per row, and its elements stay in
// registers. If kSteps is 0, the thread makes any number of accesses and loads its elements again
// for each use.
template <int kCount, int kSteps>
struct Columns {
  static constexpr bool kKeeps = kSteps > 0;
  static constexpr int kKept = kKeeps ? kSteps : 1;
  static constexpr int kStride = kThreads * kCount;

  __device__ explicit Columns(std::int64_t row_width)
      : width(static_cast<int>(row_width)),
        column(static_cast<int>(threadIdx.x) * kCount),
        steps(kKeeps ? kSteps : (width + kStride - 1) / kStride) {}

  // Calls f(register, first element) for each access.
  template <typename Function>
  __device__ void for_each(const Function& f) const {
#pragma unroll
    for (int step = 0; step < steps; ++step) {
      const int first = column + step * kStride;
      if (first < width) f(kKeeps ? step : 0, first);
    }
  }

  int width, column, steps;
};

template <typename Sum>
struct Statistics {
  Sum mean;
  Sum reciprocal;  // 1 / sqrt(variance + eps)
};

template <typename Sum>
__device__ Sum reciprocal_deviation(Sum squares, const LayerNorm& op) {
  return Sum(1) / sqrt(squares / static_cast<Sum>(op.width) + static_cast<Sum>(op.eps));
}

// T is x's type, U is the type of scale and shift.
template <typename T, typename U, int kCount, int kSteps>
__global__ void __launch_bounds__(kThreads) rematch_layer_norm_forward(LayerNorm op) {
  using Sum = SumOf<T>;
  using Own = Columns<kCount, kSteps>;
  const Own own(op.width);
  const std::int64_t batch = blockIdx.x / op.rows;
  const T* x = static_cast<const T*>(op.x) + blockIdx.x * op.width;
  const U* scale = static_cast<const U*>(op.scale) + batch * op.scale_stride;
  const U* shift = static_cast<const U*>(op.shift) + batch * op.shift_stride;
  T* y = static_cast<T*>(op.y) + blockIdx.x * op.width;
  Lanes<T, kCount> kept[Own::kKept];
  Sum sum = 0;
  own.for_each([&](int at, int i) {
    kept[at] = load_lanes<kCount>(x + i);
    for (int lane = 0; lane < kCount; ++lane) sum += kept[at][lane];
  });
  const Sum mean = block_sum(sum) / static_cast<Sum>(op.width);
  Sum squares = 0;
  own.for_each([&](int at, int i) {
    if (!Own::kKeeps) kept[at] = load_lanes<kCount>(x + i);
    for (int lane = 0; lane < kCount; ++lane) {
      squares += (kept[at][lane] - mean) * (kept[at][lane] - mean);
    }
  });
  const Sum reciprocal = reciprocal_deviation(block_sum(squares), op);
  own.for_each([&](int at, int i) {
    if (!Own::kKeeps) kept[at] = load_lanes<kCount>(x + i);
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

// Uses the formulas of the CPU kernel. Sums that are not in registers are in `partial`.
template <typename T, typename U, int kCount, int kSteps>
__global__ void __launch_bounds__(kThreads, kSteps == 1 ? 3 : 1)
    rematch_layer_norm_backward(LayerNormBackward op, std::int64_t blocks_in_batch) {
  using Sum = SumOf<T>;
  using Own = Columns<kCount, kSteps>;
  const LayerNorm& shape = op.forward;
  const Own own(shape.width);
  const auto num_columns = static_cast<Sum>(shape.width);
  const std::int64_t batch = blockIdx.x / blocks_in_batch;
  const U* scale = static_cast<const U*>(shape.scale) + batch * shape.scale_stride;
  Sum* scale_partial = static_cast<Sum*>(op.partial) + blockIdx.x * shape.width;
  Sum* shift_partial = scale_partial + shape.batch * blocks_in_batch * shape.width;
  Sum scale_sums[Own::kKept][kCount] = {};
  Sum shift_sums[Own::kKept][kCount] = {};
  if constexpr (!Own::kKeeps) {
    own.for_each([&](int, int i) {
      store_lanes(scale_sums[0], scale_partial + i);
      store_lanes(shift_sums[0], shift_partial + i);
    });
  }
  Lanes<T, kCount> kept_x[Own::kKept];
  Lanes<T, kCount> kept_grads[Own::kKept];
  Lanes<U, kCount> scales[Own::kKept];
  if constexpr (Own::kKeeps) {
    own.for_each([&](int at, int i) { scales[at] = load_lanes<kCount>(scale + i); });
  }
  for (std::int64_t row = blockIdx.x % blocks_in_batch; row < shape.rows; row += blocks_in_batch) {
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
    const Sum mean = block_sum(sum) / num_columns;
    CentredSums<Sum> sums = {0, 0, 0};
    own.for_each([&](int at, int i) {
      if (!Own::kKeeps) {
        load_row(at, i);
        scales[at] = load_lanes<kCount>(scale + i);
      }
      for (int lane = 0; lane < kCount; ++lane) {
        const Sum centred = kept_x[at][lane] - mean;
        const Sum weighted =
            kept_grads[at][lane] * (static_cast<Sum>(shape.offset) + scales[at][lane]);
        sums.squares += centred * centred;
        sums.weighted += weighted;
        sums.products += weighted * centred;
      }
    });
    sums = block_reduce(sums, [](const auto& a, const auto& b) {
      return CentredSums<Sum>{a.squares + b.squares, a.weighted + b.weighted,
                              a.products + b.products};
    });
    const Sum r = reciprocal_deviation(sums.squares, shape);
    const Sum mean_weighted = sums.weighted / num_columns;
    const Sum slope = sums.products * r * r / num_columns;
    own.for_each([&](int at, int i) {
      if (!Own::kKeeps) {
        load_row(at, i);
        scales[at] = load_lanes<kCount>(scale + i);
        load_lanes(scale_partial + i, scale_sums[at]);
        load_lanes(shift_partial + i, shift_sums[at]);
      }
      Sum gradients[kCount];
      for (int lane = 0; lane < kCount; ++lane) {
        const Sum centred = kept_x[at][lane] - mean;
        const Sum grad = kept_grads[at][lane];
        const Sum weighted = grad * (static_cast<Sum>(shape.offset) + scales[at][lane]);
        scale_sums[at][lane] += grad * centred * r;
        shift_sums[at][lane] += grad;
        gradients[lane] = (weighted - mean_weighted - centred * slope) * r;
      }
      store_lanes(gradients, grad_x + i);
      if (!Own::kKeeps) {
        store_lanes(scale_sums[at], scale_partial + i);
        store_lanes(shift_sums[at], shift_partial + i);
      }
    });
  }
  if constexpr (Own::kKeeps) {
    own.for_each([&](int at, int i) {
      store_lanes(scale_sums[at], scale_partial + i);
      store_lanes(shift_sums[at], shift_partial + i);
    });
  }
}

// Calls f with the number of accesses that a thread makes per row: 1, 2 or 4, or 0 for more than 4.
template <typename Function>
void with_steps(std::int64_t width, std::int64_t stride, const Function& f) {
  if (width <= stride) return f(std::integral_constant<int, 1>());
  if (width <= 2 * stride) return f(std::integral_constant<int, 2>());
  if (width <= 4 * stride) return f(std::integral_constant<int, 4>());
  f(std::integral_constant<int, 0>());
}

}  // namespace

int run(const LayerNorm& op, void* stream) {
  const auto num_rows = static_cast<unsigned>(op.batch * op.rows);
  if (num_rows == 0) return cudaSuccess;
  const auto on = static_cast<cudaStream_t>(stream);
  with_table_type(op.element, op.table_element, [&](auto* x, auto* table) {
    using T = std::remove_pointer_t<decltype(x)>;
    using U = std::remove_pointer_t<decltype(table)>;
    const bool wide = are_multiples(kLanes<T>, op.width, op.scale_stride, op.shift_stride) &&
                      are_aligned(op.x, op.scale, op.shift, op.y);
    with_lanes<T>(wide, [&](auto lanes) {
      constexpr int kCount = lanes;
      with_steps(op.width, kThreads * kCount, [&](auto steps) {
        constexpr int kSteps = steps;
        rematch_layer_norm_forward<T, U, kCount, kSteps><<<num_rows, kThreads, 0, on>>>(op);
      });
    });
  });
  return cudaGetLastError();
}

int run(const LayerNormBackward& op, void* stream) {
  const LayerNorm& shape = op.forward;
  const std::int64_t blocks_in_batch = num_row_blocks(shape.rows);
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
      with_steps(shape.width, kThreads * kCount, [&](auto steps) {
        constexpr int kSteps = steps;
        rematch_layer_norm_backward<T, U, kCount, kSteps>
            <<<num_blocks, kThreads, 0, on>>>(op, blocks_in_batch);
      });
    });
    const dim3 sums(sum_blocks_for(shape.width), static_cast<unsigned>(shape.batch));
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
