// Forward has one block of threads per row. In backward, a block processes every num_row_blocks-th
// row, and each thread sums its own columns. add_rms_norm uses the same kernels.
#include "kernels/fused/rms_norm.h"
#include "kernels/op/device.cuh"

namespace rematch::kernels::cuda {
namespace {

template <typename Sum>
__device__ Sum reciprocal_rms(Sum square_sum, const RmsNorm& op) {
  return Sum(1) / sqrt(square_sum / static_cast<Sum>(op.width) + static_cast<Sum>(op.eps));
}

// Two sums over one row: the sum of x^2, and the sum of grad_y * weight * x.
template <typename Sum>
struct RowSums {
  Sum squares;
  Sum products;
};

// Loads kCount elements. If `from` is null, sets all of them to `missing` instead.
template <int kCount, typename T>
__device__ void load_or(SumOf<T> missing, const T* from, int first, SumOf<T> (&to)[kCount]) {
  if (from != nullptr) return load_lanes(from + first, to);
  for (int lane = 0; lane < kCount; ++lane) to[lane] = missing;
}

// One block of threads per row. If kSteps is above 0, a thread makes kSteps accesses per row, and
// the row stays in registers. If kSteps is 0, a thread loads its row twice. With kAdds, the row is
// the sum of x and branch, rounded as it is stored.
template <typename T, int kCount, int kSteps, bool kAdds>
__global__ void __launch_bounds__(kThreads) rematch_rms_norm_forward(RmsNorm op) {
  using Sum = SumOf<T>;
  constexpr bool kKeeps = kSteps > 0;
  constexpr int kStride = kThreads * kCount;
  const int width = static_cast<int>(op.width);
  const int column = static_cast<int>(threadIdx.x) * kCount;
  const int steps = kKeeps ? kSteps : (width + kStride - 1) / kStride;
  const T* x = static_cast<const T*>(op.x) + blockIdx.x * op.x_stride + column;
  const T* branch =
      kAdds ? static_cast<const T*>(op.branch) + blockIdx.x * op.branch_stride + column : nullptr;
  T* sum = kAdds ? static_cast<T*>(op.sum) + blockIdx.x * op.width + column : nullptr;
  T* y = static_cast<T*>(op.y) + blockIdx.x * op.width + column;
  Lanes<T, kCount> kept[kKeeps ? kSteps : 1];
  Sum squares = 0;
#pragma unroll
  for (int step = 0; step < steps; ++step) {
    const int i = step * kStride;
    if (column + i >= width) continue;
    auto& lanes = kept[kKeeps ? step : 0];
    lanes = load_lanes<kCount>(x + i);
    if constexpr (kAdds) {
      const auto added = load_lanes<kCount>(branch + i);
      Sum sums[kCount];
      for (int lane = 0; lane < kCount; ++lane) sums[lane] = lanes[lane] + added[lane];
      lanes = store_lanes(sums, sum + i);
    }
    for (int lane = 0; lane < kCount; ++lane) squares += lanes[lane] * lanes[lane];
  }
  const Sum scale = reciprocal_rms(block_sum(squares), op);
#pragma unroll
  for (int step = 0; step < steps; ++step) {
    const int i = step * kStride;
    if (column + i >= width) continue;
    auto& lanes = kept[kKeeps ? step : 0];
    if (!kKeeps) lanes = load_lanes<kCount>((kAdds ? sum : x) + i);
    Sum values[kCount];
    load_or(Sum(1), static_cast<const T*>(op.weight), column + i, values);
    for (int lane = 0; lane < kCount; ++lane) values[lane] *= scale * lanes[lane];
    store_lanes(values, y + i);
  }
}

// If a thread makes at most two accesses per row, the compiler limits registers so that this many
// blocks fit on a multiprocessor at once. Four was the fastest on an H100.
inline constexpr int kBlocksOnProcessor = 4;

// Uses the formulas of the CPU kernel. If kSteps is above 0, a thread makes kSteps accesses per
// row, and its sums and loaded values stay in registers. If kSteps is 0, a thread makes any number
// of accesses, loads its row twice, and keeps its sums in memory. With kAdds, grad_sum is added to
// grad_x.
template <typename T, int kCount, int kSteps, bool kAdds>
__global__ void __launch_bounds__(kThreads, kSteps > 2 ? 2 : kBlocksOnProcessor)
    rematch_rms_norm_backward(RmsNormBackward op) {
  using Sum = SumOf<T>;
  constexpr bool kKeeps = kSteps > 0;
  constexpr int kKept = kKeeps ? kSteps : 1;
  constexpr int kStride = kThreads * kCount;
  const RmsNorm& shape = op.forward;
  const int width = static_cast<int>(shape.width);
  const int column = static_cast<int>(threadIdx.x) * kCount;
  const int steps = kKeeps ? kSteps : (width + kStride - 1) / kStride;
  const T* weight = static_cast<const T*>(shape.weight);
  Sum* partial = op.partial == nullptr
                     ? nullptr
                     : static_cast<Sum*>(op.partial) + blockIdx.x * shape.width + column;
  Sum sums[kKept][kCount] = {};
  Lanes<T, kCount> kept_x[kKept];
  Lanes<T, kCount> kept_grads[kKept];
  Lanes<T, kCount> kept_sums[kKept];  // of grad_sum
  for (std::int64_t row = blockIdx.x; row < shape.rows; row += gridDim.x) {
    const T* x = static_cast<const T*>(shape.x) + row * shape.x_stride + column;
    const T* grad_y = static_cast<const T*>(op.grad_y) + row * op.grad_stride + column;
    const T* grad_sum =
        kAdds ? static_cast<const T*>(op.grad_sum) + row * op.grad_sum_stride + column : nullptr;
    T* grad_x = static_cast<T*>(op.grad_x) + row * shape.width + column;
    Sum weights[kCount];
    RowSums<Sum> own = {0, 0};
#pragma unroll
    for (int step = 0; step < steps; ++step) {
      const int i = step * kStride;
      if (column + i >= width) continue;
      const int kept = kKeeps ? step : 0;
      kept_x[kept] = load_lanes<kCount>(x + i);
      kept_grads[kept] = load_lanes<kCount>(grad_y + i);
      if (kAdds && kKeeps) kept_sums[kept] = load_lanes<kCount>(grad_sum + i);
      load_or(Sum(1), weight, column + i, weights);
      for (int lane = 0; lane < kCount; ++lane) {
        const Sum value = kept_x[kept][lane];
        own.squares += value * value;
        own.products += kept_grads[kept][lane] * weights[lane] * value;
      }
    }
    const RowSums<Sum> of_row = block_reduce(own, [](const auto& a, const auto& b) {
      return RowSums<Sum>{a.squares + b.squares, a.products + b.products};
    });
    const Sum r = reciprocal_rms(of_row.squares, shape);
    const Sum pull = -of_row.products * r * r * r / static_cast<Sum>(shape.width);
#pragma unroll
    for (int step = 0; step < steps; ++step) {
      const int i = step * kStride;
      if (column + i >= width) continue;
      const int kept = kKeeps ? step : 0;
      if (!kKeeps) {
        kept_x[kept] = load_lanes<kCount>(x + i);
        kept_grads[kept] = load_lanes<kCount>(grad_y + i);
        if (kAdds) kept_sums[kept] = load_lanes<kCount>(grad_sum + i);
        load_or(Sum(0), row == blockIdx.x ? nullptr : partial, i, sums[kept]);
      }
      load_or(Sum(1), weight, column + i, weights);
      for (int lane = 0; lane < kCount; ++lane) {
        const Sum value = kept_x[kept][lane];
        const Sum scaled = kept_grads[kept][lane] * r;
        sums[kept][lane] += scaled * value;
        weights[lane] = value * pull + scaled * weights[lane];
        if (kAdds) weights[lane] += kept_sums[kept][lane];
      }
      store_lanes(weights, grad_x + i);
      if (!kKeeps && partial != nullptr) store_lanes(sums[kept], partial + i);
    }
  }
  if constexpr (kKeeps) {
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      const int i = step * kStride;
      if (partial != nullptr && column + i < width) store_lanes(sums[step], partial + i);
    }
  }
}

// Calls f with two constants: the number of accesses that a thread makes per row, which is 1, 2 or
// 4, or 0 for more than 4, and whether the kernel adds.
template <typename Function>
void with_steps(std::int64_t width, std::int64_t stride, bool adds, const Function& f) {
  const auto with_adds = [&](auto steps) {
    if (adds) return f(steps, std::true_type());
    f(steps, std::false_type());
  };
  if (width <= stride) return with_adds(std::integral_constant<int, 1>());
  if (width <= 2 * stride) return with_adds(std::integral_constant<int, 2>());
  if (width <= 4 * stride) return with_adds(std::integral_constant<int, 4>());
  with_adds(std::integral_constant<int, 0>());
}

}  // namespace

int run(const RmsNorm& op, void* stream) {
  const auto rows = static_cast<unsigned>(op.rows);
  const auto on = static_cast<cudaStream_t>(stream);
  with_type(op.element, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    const bool wide = are_multiples(kLanes<T>, op.width, op.x_stride, op.branch_stride) &&
                      are_aligned(op.x, op.weight, op.y, op.branch, op.sum);
    with_lanes<T>(wide, [&](auto lanes) {
      constexpr int kCount = lanes;
      with_steps(op.width, kThreads * kCount, op.branch != nullptr, [&](auto steps, auto adds) {
        constexpr int kSteps = steps;
        constexpr bool kAdds = adds;
        rematch_rms_norm_forward<T, kCount, kSteps, kAdds><<<rows, kThreads, 0, on>>>(op);
      });
    });
  });
  return cudaGetLastError();
}

int run(const RmsNormBackward& op, void* stream) {
  const RmsNorm& shape = op.forward;
  const auto on = static_cast<cudaStream_t>(stream);
  const auto num_blocks = static_cast<unsigned>(num_row_blocks(shape.rows));
  with_type(shape.element, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    const bool wide =
        are_multiples(kLanes<T>, shape.width, shape.x_stride, op.grad_stride, op.grad_sum_stride) &&
        are_aligned(shape.x, shape.weight, op.grad_y, op.grad_x, op.grad_sum);
    with_lanes<T>(wide, [&](auto lanes) {
      constexpr int kCount = lanes;
      const bool has_sum = op.grad_sum != nullptr;
      with_steps(shape.width, kThreads * kCount, has_sum, [&](auto steps, auto adds) {
        constexpr int kSteps = steps;
        constexpr bool kAdds = adds;
        rematch_rms_norm_backward<T, kCount, kSteps, kAdds><<<num_blocks, kThreads, 0, on>>>(op);
      });
    });
    if (op.partial == nullptr) return;
    rematch_add_partial_sums<T><<<sum_blocks_for(shape.width), kThreads, 0, on>>>(
        static_cast<const SumOf<T>*>(op.partial), num_blocks, shape.width,
        static_cast<T*>(op.grad_weight));
  });
  return cudaGetLastError();
}

}  // namespace rematch::kernels::cuda
