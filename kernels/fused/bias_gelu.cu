// A block of threads covers kThreads * kCount columns of every num_row_blocks-th row, so that a
// thread loads its biases once and sums its own columns.
#include "kernels/fused/bias_gelu.h"
#include "kernels/op/device.cuh"

namespace rematch::kernels::cuda {
namespace {

// GELU's tanh approximation is x * sigmoid(2u), where u = kSlope * (x + kCubic * x^3).
constexpr double kSlope = 0.79788456080286536;  // sqrt(2 / pi)
constexpr double kCubic = 0.044715;

template <typename Sum>
__device__ Sum gate_of(Sum x) {
  const Sum inner = Sum(2 * kSlope) + Sum(2 * kSlope * kCubic) * x * x;
  return Sum(1) / (Sum(1) + exp(-x * inner));
}

template <typename T, int kCount>
__global__ void __launch_bounds__(kThreads) rematch_bias_gelu_forward(BiasGelu op) {
  using Sum = SumOf<T>;
  const std::int64_t column = std::int64_t{blockIdx.y * kThreads + threadIdx.x} * kCount;
  if (column >= op.width) return;
  const auto biases = load_lanes<kCount>(static_cast<const T*>(op.bias) + column);
  for (std::int64_t row = blockIdx.x; row < op.rows; row += gridDim.x) {
    const std::int64_t place = row * op.width + column;
    const auto x = load_lanes<kCount>(static_cast<const T*>(op.x) + place);
    Sum values[kCount];
    for (int lane = 0; lane < kCount; ++lane) {
      const Sum sum = x[lane] + biases[lane];
      values[lane] = sum * gate_of(sum);
    }
    store_lanes(values, static_cast<T*>(op.y) + place);
  }
}

// Uses the formulas of the CPU kernel.
template <typename T, int kCount>
__global__ void __launch_bounds__(kThreads) rematch_bias_gelu_backward(BiasGeluBackward op) {
  using Sum = SumOf<T>;
  const BiasGelu& shape = op.forward;
  const std::int64_t column = std::int64_t{blockIdx.y * kThreads + threadIdx.x} * kCount;
  if (column >= shape.width) return;
  const auto biases = load_lanes<kCount>(static_cast<const T*>(shape.bias) + column);
  Sum sums[kCount] = {};
  for (std::int64_t row = blockIdx.x; row < shape.rows; row += gridDim.x) {
    const std::int64_t place = row * shape.width + column;
    const auto x = load_lanes<kCount>(static_cast<const T*>(shape.x) + place);
    const auto grads = load_lanes<kCount>(static_cast<const T*>(op.grad_y) + place);
    Sum values[kCount];
    for (int lane = 0; lane < kCount; ++lane) {
      const Sum sum = x[lane] + biases[lane];
      const Sum s = gate_of(sum);
      const Sum inner = Sum(2 * kSlope) + Sum(6 * kSlope * kCubic) * sum * sum;
      values[lane] = grads[lane] * s * (Sum(1) + sum * inner * (Sum(1) - s));
      sums[lane] += values[lane];
    }
    store_lanes(values, static_cast<T*>(op.grad_x) + place);
  }
  if (op.partial == nullptr) return;
  store_lanes(sums, static_cast<Sum*>(op.partial) + blockIdx.x * shape.width + column);
}

inline dim3 blocks_of(const BiasGelu& op, int count) {
  return dim3(static_cast<unsigned>(num_row_blocks(op.rows)),
              blocks_for((op.width + count - 1) / count));
}

}  // namespace

int run(const BiasGelu& op, void* stream) {
  const auto on = static_cast<cudaStream_t>(stream);
  with_type(op.element, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    const bool wide = are_multiples(kLanes<T>, op.width) && are_aligned(op.x, op.bias, op.y);
    with_lanes<T>(wide, [&](auto lanes) {
      constexpr int kCount = lanes;
      const dim3 grid = blocks_of(op, kCount);
      rematch_bias_gelu_forward<T, kCount><<<grid, kThreads, 0, on>>>(op);
    });
  });
  return cudaGetLastError();
}

int run(const BiasGeluBackward& op, void* stream) {
  const BiasGelu& shape = op.forward;
  const auto on = static_cast<cudaStream_t>(stream);
  with_type(shape.element, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    const bool wide = are_multiples(kLanes<T>, shape.width) &&
                      are_aligned(shape.x, shape.bias, op.grad_y, op.grad_x);
    with_lanes<T>(wide, [&](auto lanes) {
      constexpr int kCount = lanes;
      const dim3 grid = blocks_of(shape, kCount);
      rematch_bias_gelu_backward<T, kCount><<<grid, kThreads, 0, on>>>(op);
    });
    if (op.partial == nullptr) return;
    rematch_add_partial_sums<T><<<sum_blocks_for(shape.width), kThreads, 0, on>>>(
        static_cast<const SumOf<T>*>(op.partial), num_row_blocks(shape.rows), shape.width,
        static_cast<T*>(op.grad_bias));
  });
  return cudaGetLastError();
}

}  // namespace rematch::kernels::cuda
