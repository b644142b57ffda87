// A block of threads for each row; in backward for each block of rows, whose sums over columns each
// thread keeps for its own columns.
#include "kernels/op/device.cuh"
#include "kernels/rms_norm/rms_norm_kernels.h"

namespace rematch::kernels::cuda {
namespace {

template <typename Sum>
__device__ Sum reciprocal_rms(Sum square_sum, const RmsNorm& op) {
  return Sum(1) / sqrt(square_sum / static_cast<Sum>(op.width) + static_cast<Sum>(op.eps));
}

template <typename T>
__global__ void rematch_rms_norm_forward(RmsNorm op) {
  using Sum = SumOf<T>;
  const T* x = static_cast<const T*>(op.x) + blockIdx.x * op.x_stride;
  const T* weight = static_cast<const T*>(op.weight);
  T* y = static_cast<T*>(op.y) + blockIdx.x * op.width;
  Sum squares = 0;
  for (std::int64_t i = threadIdx.x; i < op.width; i += kThreads) {
    squares += load(x + i) * load(x + i);
  }
  const Sum scale = reciprocal_rms(block_sum(squares), op);
  for (std::int64_t i = threadIdx.x; i < op.width; i += kThreads) {
    Sum result = load(x + i) * scale;
    if (weight != nullptr) result *= load(weight + i);
    store(result, y + i);
  }
}

// As the CPU's: grad_x = r grad_y w - x r^3 mean(grad_y w x), grad_weight sums grad_y x r.
template <typename T>
__global__ void rematch_rms_norm_backward(RmsNormBackward op) {
  using Sum = SumOf<T>;
  const RmsNorm& shape = op.forward;
  const T* weight = static_cast<const T*>(shape.weight);
  Sum* sums =
      op.partial == nullptr ? nullptr : static_cast<Sum*>(op.partial) + blockIdx.x * shape.width;
  const std::int64_t first = blockIdx.x * kRowsInBlock;
  for (std::int64_t row = first; row < shape.rows && row < first + kRowsInBlock; ++row) {
    const T* x = static_cast<const T*>(shape.x) + row * shape.x_stride;
    const T* grad_y = static_cast<const T*>(op.grad_y) + row * op.grad_stride;
    T* grad_x = static_cast<T*>(op.grad_x) + row * shape.width;
    const auto weighted = [&](std::int64_t i) {
      return weight == nullptr ? load(grad_y + i) : load(grad_y + i) * load(weight + i);
    };
    Sum squares = 0;
    Sum products = 0;
    for (std::int64_t i = threadIdx.x; i < shape.width; i += kThreads) {
      const Sum value = load(x + i);
      squares += value * value;
      products += weighted(i) * value;
    }
    const Sum r = reciprocal_rms(block_sum(squares), shape);
    const Sum pull = -block_sum(products) * r * r * r / static_cast<Sum>(shape.width);
    for (std::int64_t i = threadIdx.x; i < shape.width; i += kThreads) {
      const Sum value = load(x + i);
      store(value * pull + weighted(i) * r, grad_x + i);
      if (sums == nullptr) continue;
      const Sum product = load(grad_y + i) * value * r;
      sums[i] = row == first ? product : sums[i] + product;
    }
  }
}

}  // namespace

int rms_norm(const RmsNorm& op, void* stream) {
  with_type(op.element, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    rematch_rms_norm_forward<T>
        <<<static_cast<unsigned>(op.rows), kThreads, 0, static_cast<cudaStream_t>(stream)>>>(op);
  });
  return cudaGetLastError();
}

int rms_norm_backward(const RmsNormBackward& op, void* stream) {
  with_type(op.forward.element, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    const auto on = static_cast<cudaStream_t>(stream);
    const auto num_blocks = static_cast<unsigned>(num_row_blocks(op.forward.rows));
    rematch_rms_norm_backward<T><<<num_blocks, kThreads, 0, on>>>(op);
    if (op.partial == nullptr) return;
    rematch_add_partial_sums<T><<<blocks_for(op.forward.width), kThreads, 0, on>>>(
        static_cast<const SumOf<T>*>(op.partial), num_blocks, op.forward.width,
        static_cast<T*>(op.grad_weight));
  });
  return cudaGetLastError();
}

}  // namespace rematch::kernels::cuda
