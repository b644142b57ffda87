// Forward processes each row once. In backward, the grid is fixed, a block processes many rows, and
// each thread sums its own columns. add_rms_norm uses the same kernels.
#include "kernels/fused/rms_norm.h"
#include "kernels/op/rows.cuh"

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

// Loads kCount elements. If `from` is null, returns `missing` for each of them.
template <int kCount, typename T>
__device__ Lanes<T, kCount> load_or(SumOf<T> missing, const T* from, int first) {
  if (from != nullptr) return load_lanes<kCount>(from + first);
  SumOf<T> values[kCount];
  for (int lane = 0; lane < kCount; ++lane) values[lane] = missing;
  return __builtin_bit_cast(Lanes<T, kCount>, narrowed_lanes<T>(values));
}

// With kAdds, the row is the sum of x and branch, rounded as it is stored.
template <typename T, int kCount, typename Shape, bool kAdds>
__global__ void __launch_bounds__(kThreads) rematch_rms_norm_forward(RmsNorm op) {
  using Sum = SumOf<T>;
  const std::int64_t row = std::int64_t{blockIdx.x} * Shape::kRows + threadIdx.x / Shape::kGroup;
  const Columns<kCount, Shape> own(row < op.rows ? op.width : 0);
  const T* x = static_cast<const T*>(op.x) + row * op.x_stride;
  const T* branch = kAdds ? static_cast<const T*>(op.branch) + row * op.branch_stride : nullptr;
  T* sum = kAdds ? static_cast<T*>(op.sum) + row * op.width : nullptr;
  T* y = static_cast<T*>(op.y) + row * op.width;
  Lanes<T, kCount> kept[Shape::kKept];
  Sum squares = 0;
  own.for_each([&](int at, int i) {
    auto& lanes = kept[at];
    lanes = load_lanes<kCount>(x + i);
    if constexpr (kAdds) {
      const auto added = load_lanes<kCount>(branch + i);
      Sum sums[kCount];
      for (int lane = 0; lane < kCount; ++lane) sums[lane] = lanes[lane] + added[lane];
      lanes = store_lanes(sums, sum + i);
    }
    for (int lane = 0; lane < kCount; ++lane) squares += lanes[lane] * lanes[lane];
  });
  const Sum scale = reciprocal_rms(group_sum<Shape::kGroup>(squares), op);
  own.for_each([&](int at, int i) {
    auto& lanes = kept[at];
    if (!Shape::kKeeps) lanes = load_lanes<kCount>((kAdds ? sum : x) + i);
    const auto weights = load_or<kCount>(Sum(1), static_cast<const T*>(op.weight), i);
    Sum values[kCount];
    for (int lane = 0; lane < kCount; ++lane) values[lane] = weights[lane] * (scale * lanes[lane]);
    store_lanes(values, y + i);
  });
}

// A thread's elements of one row of x and grad_y.
template <typename T, int kCount, int kKept>
struct BackwardRow {
  Lanes<T, kCount> x[kKept], grads[kKept];

  __device__ void load(const RmsNormBackward& op, std::int64_t row, int at, int i) {
    const RmsNorm& shape = op.forward;
    x[at] = load_lanes<kCount>(static_cast<const T*>(shape.x) + row * shape.x_stride + i);
    grads[at] = load_lanes<kCount>(static_cast<const T*>(op.grad_y) + row * op.grad_stride + i);
  }
};

// Uses the formulas of the CPU kernel. If the shape keeps elements, the loads of the next row are
// started before the sums of this row, so that they overlap. The weight is then loaded once. If
// not, a thread loads its row twice, and keeps its column sums in memory. With kAdds, grad_sum is
// added to grad_x.
template <typename T, int kCount, typename Shape, bool kAdds>
__global__ void __launch_bounds__(kThreads) rematch_rms_norm_backward(RmsNormBackward op) {
  using Sum = SumOf<T>;
  constexpr bool kKeeps = Shape::kKeeps;
  const RmsNorm& shape = op.forward;
  const T* weight = static_cast<const T*>(shape.weight);
  Sum* partial =
      op.partial == nullptr ? nullptr : static_cast<Sum*>(op.partial) + blockIdx.x * shape.width;
  const Columns<kCount, Shape> columns(shape.width);
  const std::int64_t stride = std::int64_t{gridDim.x} * Shape::kRows;
  const std::int64_t first = std::int64_t{blockIdx.x} * Shape::kRows;
  const int group = static_cast<int>(threadIdx.x) / Shape::kGroup;
  Sum sums[Shape::kKept * kCount] = {};
  Lanes<T, kCount> weights[Shape::kKept];
  BackwardRow<T, kCount, Shape::kKept> current, next;
  Lanes<T, kCount> grad_sums[Shape::kKept];
  const auto load_weights = [&](int at, int i) {
    weights[at] = load_or<kCount>(Sum(1), weight, i);
  };
  const auto load_next = [&](std::int64_t row) {
    if (row < shape.rows) columns.for_each([&](int at, int i) { next.load(op, row, at, i); });
  };
  if constexpr (kKeeps) {
    columns.for_each(load_weights);
    load_next(first + group);
  }
  int turn = 0;
  // All groups of a block make the same number of turns, because they meet at barriers.
  for (std::int64_t base = first; base < shape.rows; base += stride) {
    const std::int64_t row = base + group;
    const Columns<kCount, Shape> own(row < shape.rows ? shape.width : 0);
    if constexpr (kKeeps) {
      current = next;
      load_next(row + stride);
    }
    const auto load_grad_sum = [&](int at, int i) {
      const T* grad_sum = static_cast<const T*>(op.grad_sum) + row * op.grad_sum_stride;
      grad_sums[at] = load_lanes<kCount>(grad_sum + i);
    };
    if constexpr (kAdds && kKeeps) own.for_each(load_grad_sum);
    RowSums<Sum> of_thread = {0, 0};
    own.for_each([&](int at, int i) {
      if constexpr (!kKeeps) {
        current.load(op, row, at, i);
        load_weights(at, i);
      }
      for (int lane = 0; lane < kCount; ++lane) {
        const Sum value = current.x[at][lane];
        of_thread.squares += value * value;
        of_thread.products += current.grads[at][lane] * weights[at][lane] * value;
      }
    });
    const RowSums<Sum> of_row = group_reduce<Shape::kGroup>(
        of_thread,
        [](const auto& a, const auto& b) {
          return RowSums<Sum>{a.squares + b.squares, a.products + b.products};
        },
        turn);
    turn = 1 - turn;
    const Sum r = reciprocal_rms(of_row.squares, shape);
    const Sum pull = -of_row.products * r * r * r / static_cast<Sum>(shape.width);
    own.for_each([&](int at, int i) {
      if constexpr (!kKeeps) {
        current.load(op, row, at, i);
        load_weights(at, i);
        if constexpr (kAdds) load_grad_sum(at, i);
        const auto before = load_or<kCount>(Sum(0), base == first ? nullptr : partial, i);
        for (int lane = 0; lane < kCount; ++lane) sums[lane] = before[lane];
      }
      Sum gradients[kCount];
      for (int lane = 0; lane < kCount; ++lane) {
        const Sum value = current.x[at][lane];
        const Sum scaled = current.grads[at][lane] * r;
        sums[at * kCount + lane] += scaled * value;
        gradients[lane] = value * pull + scaled * weights[at][lane];
        if constexpr (kAdds) gradients[lane] += grad_sums[at][lane];
      }
      store_lanes(gradients, static_cast<T*>(op.grad_x) + row * shape.width + i);
      if constexpr (!kKeeps) {
        if (partial != nullptr) store_lanes(sums, partial + i);
      }
    });
  }
  if constexpr (kKeeps) {
    if (partial == nullptr || !add_over_groups<Shape::kGroup>(sums)) return;
    columns.for_each([&](int at, int i) {
      Sum totals[kCount];
      for (int lane = 0; lane < kCount; ++lane) totals[lane] = sums[at * kCount + lane];
      store_lanes(totals, partial + i);
    });
  }
}

// Calls f with the shape of the rows, and whether the kernel adds.
template <int kCount, typename Function>
void with_shape(std::int64_t width, bool adds, const Function& f) {
  with_row_shape<kCount>(width, [&](auto shape) {
    if (adds) return f(shape, std::true_type());
    f(shape, std::false_type());
  });
}

}  // namespace

int run(const RmsNorm& op, void* stream) {
  const auto on = static_cast<cudaStream_t>(stream);
  with_type(op.element, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    const bool wide = are_multiples(kLanes<T>, op.width, op.x_stride, op.branch_stride) &&
                      are_aligned(op.x, op.weight, op.y, op.branch, op.sum);
    with_lanes<T>(wide, [&](auto lanes) {
      constexpr int kCount = lanes;
      with_shape<kCount>(op.width, op.branch != nullptr, [&](auto shape, auto adds) {
        using Shape = decltype(shape);
        constexpr bool kAdds = adds;
        const unsigned blocks = blocks_for_rows<Shape>(op.rows);
        rematch_rms_norm_forward<T, kCount, Shape, kAdds><<<blocks, kThreads, 0, on>>>(op);
      });
    });
  });
  return cudaGetLastError();
}

int run(const RmsNormBackward& op, void* stream) {
  const RmsNorm& shape = op.forward;
  const auto on = static_cast<cudaStream_t>(stream);
  const auto num_blocks = static_cast<unsigned>(num_sum_blocks(shape.rows));
  with_type(shape.element, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    const bool wide =
        are_multiples(kLanes<T>, shape.width, shape.x_stride, op.grad_stride, op.grad_sum_stride) &&
        are_aligned(shape.x, shape.weight, op.grad_y, op.grad_x, op.grad_sum);
    with_lanes<T>(wide, [&](auto lanes) {
      constexpr int kCount = lanes;
      const bool has_sum = op.grad_sum != nullptr;
      with_shape<kCount>(shape.width, has_sum, [&](auto row_shape, auto adds) {
        using Shape = decltype(row_shape);
        constexpr bool kAdds = adds;
        rematch_rms_norm_backward<T, kCount, Shape, kAdds><<<num_blocks, kThreads, 0, on>>>(op);
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
