// A block of threads for each row; in backward for each block of rows, whose sums over columns each
// thread keeps for its own columns.
#include "kernels/fused/rms_norm.h"
#include "kernels/op/device.cuh"

namespace rematch::kernels::cuda {
namespace {

template <typename Sum>
__device__ Sum reciprocal_rms(Sum square_sum, const RmsNorm& op) {
  return Sum(1) / sqrt(square_sum / static_cast<Sum>(op.width) + static_cast<Sum>(op.eps));
}

// Of a row: those of x, and of grad_y w x.
template <typename Sum>
struct RowSums {
  Sum squares;
  Sum products;
};

// All ones without a weight.
template <int kCount, typename T>
__device__ void load_weights(const T* weight, int first, SumOf<T> (&to)[kCount]) {
  if (weight != nullptr) return load_lanes(weight + first, to);
  for (int lane = 0; lane < kCount; ++lane) to[lane] = 1;
}

template <typename T, int kCount>
__global__ void rematch_rms_norm_forward(RmsNorm op) {
  using Sum = SumOf<T>;
  const int width = static_cast<int>(op.width);
  const T* x = static_cast<const T*>(op.x) + blockIdx.x * op.x_stride;
  T* y = static_cast<T*>(op.y) + blockIdx.x * op.width;
  Sum squares = 0;
  for (int i = static_cast<int>(threadIdx.x) * kCount; i < width; i += kThreads * kCount) {
    Sum values[kCount];
    load_lanes(x + i, values);
    for (int lane = 0; lane < kCount; ++lane) squares += values[lane] * values[lane];
  }
  const Sum scale = reciprocal_rms(block_sum(squares), op);
  for (int i = static_cast<int>(threadIdx.x) * kCount; i < width; i += kThreads * kCount) {
    Sum values[kCount];
    Sum weights[kCount];
    load_lanes(x + i, values);
    load_weights(static_cast<const T*>(op.weight), i, weights);
    for (int lane = 0; lane < kCount; ++lane) values[lane] *= scale * weights[lane];
    store_lanes(values, y + i);
  }
}

// As the CPU's: grad_x = r grad_y w - x r^3 mean(grad_y w x), grad_weight sums grad_y x r.
template <typename T, int kCount>
__global__ void rematch_rms_norm_backward(RmsNormBackward op) {
  using Sum = SumOf<T>;
  const RmsNorm& shape = op.forward;
  const int width = static_cast<int>(shape.width);
  const T* weight = static_cast<const T*>(shape.weight);
  Sum* sums =
      op.partial == nullptr ? nullptr : static_cast<Sum*>(op.partial) + blockIdx.x * shape.width;
  const std::int64_t first = blockIdx.x * kRowsInBlock;
  for (std::int64_t row = first; row < shape.rows && row < first + kRowsInBlock; ++row) {
    const T* x = static_cast<const T*>(shape.x) + row * shape.x_stride;
    const T* grad_y = static_cast<const T*>(op.grad_y) + row * op.grad_stride;
    T* grad_x = static_cast<T*>(op.grad_x) + row * shape.width;
    Sum values[kCount];
    Sum grads[kCount];
    Sum weights[kCount];
    RowSums<Sum> own = {0, 0};
    for (int i = static_cast<int>(threadIdx.x) * kCount; i < width; i += kThreads * kCount) {
      load_lanes(x + i, values);
      load_lanes(grad_y + i, grads);
      load_weights(weight, i, weights);
      for (int lane = 0; lane < kCount; ++lane) {
        own.squares += values[lane] * values[lane];
        own.products += grads[lane] * weights[lane] * values[lane];
      }
    }
    const RowSums<Sum> of_row = block_reduce(own, [](const auto& a, const auto& b) {
      return RowSums<Sum>{a.squares + b.squares, a.products + b.products};
    });
    const Sum r = reciprocal_rms(of_row.squares, shape);
    const Sum pull = -of_row.products * r * r * r / static_cast<Sum>(shape.width);
    for (int i = static_cast<int>(threadIdx.x) * kCount; i < width; i += kThreads * kCount) {
      load_lanes(x + i, values);
      load_lanes(grad_y + i, grads);
      load_weights(weight, i, weights);
      for (int lane = 0; sums != nullptr && lane < kCount; ++lane) {
        const Sum product = grads[lane] * values[lane] * r;
        store(row == first ? product : load(sums + i + lane) + product, sums + i + lane);
      }
      for (int lane = 0; lane < kCount; ++lane) {
        values[lane] = values[lane] * pull + grads[lane] * weights[lane] * r;
      }
      store_lanes(values, grad_x + i);
    }
  }
}

}  // namespace

int run(const RmsNorm& op, void* stream) {
  const auto rows = static_cast<unsigned>(op.rows);
  const auto on = static_cast<cudaStream_t>(stream);
  with_type(op.element, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    const bool wide =
        are_multiples(kLanes<T>, op.width, op.x_stride) && are_aligned(op.x, op.weight, op.y);
    with_lanes<T>(wide, [&](auto lanes) {
      constexpr int kCount = lanes;
      rematch_rms_norm_forward<T, kCount><<<rows, kThreads, 0, on>>>(op);
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
    const bool wide = are_multiples(kLanes<T>, shape.width, shape.x_stride, op.grad_stride) &&
                      are_aligned(shape.x, shape.weight, op.grad_y, op.grad_x);
    with_lanes<T>(wide, [&](auto lanes) {
      constexpr int kCount = lanes;
      rematch_rms_norm_backward<T, kCount><<<num_blocks, kThreads, 0, on>>>(op);
    });
    if (op.partial == nullptr) return;
    rematch_add_partial_sums<T><<<sum_blocks_for(shape.width), kThreads, 0, on>>>(
        static_cast<const SumOf<T>*>(op.partial), num_blocks, shape.width,
        static_cast<T*>(op.grad_weight));
  });
  return cudaGetLastError();
}

}  // namespace rematch::kernels::cuda
