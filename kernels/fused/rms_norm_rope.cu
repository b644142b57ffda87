// Forward has one block of threads per row. In backward, a block processes every num_row_blocks-th
// row, and each thread sums its own columns. A thread handles kCount elements at a time, which are
// whole pairs of one head.
#include "kernels/fused/rms_norm_rope.h"
#include "kernels/op/rows.cuh"

namespace rematch::kernels::cuda {
namespace {

template <typename Sum>
__device__ Sum reciprocal_rms(Sum square_sum, const RmsNormRope& op) {
  return Sum(1) / sqrt(square_sum / static_cast<Sum>(op.width) + static_cast<Sum>(op.eps));
}

// Loads kCount elements. One access reads kAccess elements.
template <int kAccess, int kCount, typename T>
__device__ void load_group(const T* from, SumOf<T> (&to)[kCount]) {
  for (int at = 0; at < kCount; at += kAccess) {
    SumOf<T> some[kAccess];
    load_lanes(from + at, some);
    for (int lane = 0; lane < kAccess; ++lane) to[at + lane] = some[lane];
  }
}

template <int kAccess, int kCount, typename T>
__device__ void store_group(const SumOf<T> (&from)[kCount], T* to) {
  for (int at = 0; at < kCount; at += kAccess) {
    SumOf<T> some[kAccess];
    for (int lane = 0; lane < kAccess; ++lane) some[lane] = from[at + lane];
    store_lanes(some, to + at);
  }
}

// Rotates the pairs of `values`, which begin at element `first` of a row, or rotates them back if
// `direction` is -1.
template <int kCount, typename Sum>
__device__ void turn(const RmsNormRope& op, std::int64_t row, int first, Sum direction,
                     Sum (&values)[kCount]) {
  const std::int64_t place = row % op.tokens * op.pairs + first % (2 * op.pairs) / 2;
  const Sum* cosine = static_cast<const Sum*>(op.cosine) + place;
  const Sum* sine = static_cast<const Sum*>(op.sine) + place;
  for (int pair = 0; pair < kCount / 2; ++pair) {
    const Sum c = load(cosine + pair);
    const Sum s = load(sine + pair) * direction;
    const Sum even = values[2 * pair];
    const Sum odd = values[2 * pair + 1];
    values[2 * pair] = even * c - odd * s;
    values[2 * pair + 1] = even * s + odd * c;
  }
}

// If kSteps is above 0, a thread makes at most kSteps steps per row, and its elements stay in
// registers. If kSteps is 0, it loads its elements twice.
template <typename T, int kCount, int kAccess, int kSteps>
__global__ void __launch_bounds__(kThreads) rematch_rms_norm_rope_forward(RmsNormRope op) {
  using Sum = SumOf<T>;
  constexpr bool kKeeps = kSteps > 0;
  constexpr int kStride = kThreads * kCount;
  const int width = static_cast<int>(op.width);
  const int column = static_cast<int>(threadIdx.x) * kCount;
  const int steps = kKeeps ? kSteps : (width + kStride - 1) / kStride;
  const T* x = static_cast<const T*>(op.x) + blockIdx.x * op.x_stride;
  const T* weight = static_cast<const T*>(op.weight);
  T* y = static_cast<T*>(op.y) + blockIdx.x * op.width;
  Sum kept[kKeeps ? kSteps : 1][kCount];
  Sum squares = 0;
#pragma unroll
  for (int step = 0; step < steps; ++step) {
    const int i = column + step * kStride;
    if (i >= width) continue;
    auto& values = kept[kKeeps ? step : 0];
    load_group<kAccess>(x + i, values);
    for (int lane = 0; lane < kCount; ++lane) squares += values[lane] * values[lane];
  }
  const Sum scale = reciprocal_rms(group_sum<kThreads>(squares), op);
#pragma unroll
  for (int step = 0; step < steps; ++step) {
    const int i = column + step * kStride;
    if (i >= width) continue;
    auto& values = kept[kKeeps ? step : 0];
    if (!kKeeps) load_group<kAccess>(x + i, values);
    Sum weights[kCount];
    load_group<kAccess>(weight + i, weights);
    for (int lane = 0; lane < kCount; ++lane) values[lane] *= scale * weights[lane];
    turn(op, blockIdx.x, i, Sum(1), values);
    store_group<kAccess>(values, y + i);
  }
}

// Two sums over one row: of x^2, and of g * weight * x, where g is the gradient of the norm.
template <typename Sum>
struct NormSums {
  Sum squares;
  Sum products;
};

// Uses the formulas of the CPU kernel. If kSteps is 0, the sums of the weight's gradient are in
// `partial`.
template <typename T, int kCount, int kAccess, int kSteps>
__global__ void __launch_bounds__(kThreads) rematch_rms_norm_rope_backward(RmsNormRopeBackward op) {
  using Sum = SumOf<T>;
  constexpr bool kKeeps = kSteps > 0;
  constexpr int kKept = kKeeps ? kSteps : 1;
  constexpr int kStride = kThreads * kCount;
  const RmsNormRope& shape = op.forward;
  const int width = static_cast<int>(shape.width);
  const int column = static_cast<int>(threadIdx.x) * kCount;
  const int steps = kKeeps ? kSteps : (width + kStride - 1) / kStride;
  const T* weight = static_cast<const T*>(shape.weight);
  Sum* partial =
      op.partial == nullptr ? nullptr : static_cast<Sum*>(op.partial) + blockIdx.x * shape.width;
  Sum sums[kKept][kCount] = {};
  Sum x_of_row[kKept][kCount];
  Sum grads[kKept][kCount];
  Sum weights[kCount];
  for (std::int64_t row = blockIdx.x; row < shape.rows; row += gridDim.x) {
    const T* x = static_cast<const T*>(shape.x) + row * shape.x_stride;
    const T* grad_y = static_cast<const T*>(op.grad_y) + row * op.grad_stride;
    T* grad_x = static_cast<T*>(op.grad_x) + row * shape.width;
    const auto load_step = [&](int kept, int i) {
      load_group<kAccess>(x + i, x_of_row[kept]);
      load_group<kAccess>(grad_y + i, grads[kept]);
      turn(shape, row, i, Sum(-1), grads[kept]);
    };
    NormSums<Sum> own = {0, 0};
#pragma unroll
    for (int step = 0; step < steps; ++step) {
      const int i = column + step * kStride;
      if (i >= width) continue;
      const int kept = kKeeps ? step : 0;
      load_step(kept, i);
      load_group<kAccess>(weight + i, weights);
      for (int lane = 0; lane < kCount; ++lane) {
        const Sum value = x_of_row[kept][lane];
        own.squares += value * value;
        own.products += grads[kept][lane] * weights[lane] * value;
      }
    }
    const NormSums<Sum> of_row = group_reduce<kThreads>(
        own,
        [](const auto& a, const auto& b) {
          return NormSums<Sum>{a.squares + b.squares, a.products + b.products};
        },
        static_cast<int>(row / gridDim.x % 2));
    const Sum r = reciprocal_rms(of_row.squares, shape);
    const Sum pull = -of_row.products * r * r * r / static_cast<Sum>(shape.width);
#pragma unroll
    for (int step = 0; step < steps; ++step) {
      const int i = column + step * kStride;
      if (i >= width) continue;
      const int kept = kKeeps ? step : 0;
      if (!kKeeps) {
        load_step(kept, i);
        const bool has_sums = partial != nullptr && row != blockIdx.x;
        for (int lane = 0; lane < kCount; ++lane) {
          sums[kept][lane] = has_sums ? load(partial + i + lane) : Sum(0);
        }
      }
      load_group<kAccess>(weight + i, weights);
      for (int lane = 0; lane < kCount; ++lane) {
        const Sum value = x_of_row[kept][lane];
        const Sum scaled = grads[kept][lane] * r;
        sums[kept][lane] += scaled * value;
        weights[lane] = value * pull + scaled * weights[lane];
      }
      store_group<kAccess>(weights, grad_x + i);
      if (!kKeeps && partial != nullptr) store_group<kAccess>(sums[kept], partial + i);
    }
  }
  if constexpr (kKeeps) {
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      const int i = column + step * kStride;
      if (partial != nullptr && i < width) store_group<kAccess>(sums[step], partial + i);
    }
  }
}

// Calls f with three constants: the number of elements that a thread handles at a time, the number
// that one access moves, and the number of steps per row, which is 1, 2 or 4, or 0 for more than 4.
template <typename T, typename Function>
void with_group(const RmsNormRope& op, bool wide, const Function& f) {
  const auto with_count = [&](auto count, auto access) {
    constexpr int kStride = kThreads * decltype(count)::value;
    if (op.width <= kStride) return f(count, access, std::integral_constant<int, 1>());
    if (op.width <= 2 * kStride) return f(count, access, std::integral_constant<int, 2>());
    if (op.width <= 4 * kStride) return f(count, access, std::integral_constant<int, 4>());
    f(count, access, std::integral_constant<int, 0>());
  };
  using Wide = std::integral_constant<int, kLanes<T>>;
  if (wide) return with_count(Wide(), Wide());
  with_count(std::integral_constant<int, 2>(), std::integral_constant<int, 1>());
}

}  // namespace

int run(const RmsNormRope& op, void* stream) {
  const auto rows = static_cast<unsigned>(op.rows);
  const auto on = static_cast<cudaStream_t>(stream);
  with_type(op.element, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    const bool wide =
        are_multiples(kLanes<T>, op.x_stride, 2 * op.pairs) && are_aligned(op.x, op.weight, op.y);
    with_group<T>(op, wide, [&](auto count, auto access, auto steps) {
      constexpr int kCount = count;
      constexpr int kAccess = access;
      constexpr int kSteps = steps;
      rematch_rms_norm_rope_forward<T, kCount, kAccess, kSteps><<<rows, kThreads, 0, on>>>(op);
    });
  });
  return cudaGetLastError();
}

int run(const RmsNormRopeBackward& op, void* stream) {
  const RmsNormRope& shape = op.forward;
  const auto on = static_cast<cudaStream_t>(stream);
  const auto num_blocks = static_cast<unsigned>(num_row_blocks(shape.rows));
  with_type(shape.element, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    const bool wide = are_multiples(kLanes<T>, shape.x_stride, op.grad_stride, 2 * shape.pairs) &&
                      are_aligned(shape.x, shape.weight, op.grad_y, op.grad_x);
    with_group<T>(shape, wide, [&](auto count, auto access, auto steps) {
      constexpr int kCount = count;
      constexpr int kAccess = access;
      constexpr int kSteps = steps;
      rematch_rms_norm_rope_backward<T, kCount, kAccess, kSteps>
          <<<num_blocks, kThreads, 0, on>>>(op);
    });
    if (op.partial == nullptr) return;
    rematch_add_partial_sums<T><<<sum_blocks_for(shape.width), kThreads, 0, on>>>(
        static_cast<const SumOf<T>*>(op.partial), num_blocks, shape.width,
        static_cast<T*>(op.grad_weight));
  });
  return cudaGetLastError();
}

}  // namespace rematch::kernels::cuda
