// A thread for each element.
#include "kernels/op/device.cuh"
#include "kernels/silu_mul/silu_mul_kernels.h"

namespace rematch::kernels::cuda {
namespace {

template <typename Sum>
__device__ Sum sigmoid(Sum x) {
  return Sum(1) / (Sum(1) + exp(-x));
}

template <typename T>
__global__ void rematch_silu_mul_forward(SiluMul op) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= op.size) return;
  const SumOf<T> gate = load(static_cast<const T*>(op.gate) + i);
  const SumOf<T> up = load(static_cast<const T*>(op.up) + i);
  store(gate * sigmoid(gate) * up, static_cast<T*>(op.out) + i);
}

// With s = sigmoid(gate): silu' = s (1 + gate (1 - s)).
template <typename T>
__global__ void rematch_silu_mul_backward(SiluMulBackward op) {
  using Sum = SumOf<T>;
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= op.size) return;
  const Sum gate = load(static_cast<const T*>(op.gate) + i);
  const Sum up = load(static_cast<const T*>(op.up) + i);
  const Sum grad = load(static_cast<const T*>(op.grad_out) + i);
  const Sum s = sigmoid(gate);
  store(grad * gate * s, static_cast<T*>(op.grad_up) + i);
  store(grad * up * (s * (Sum(1) + gate * (Sum(1) - s))), static_cast<T*>(op.grad_gate) + i);
}

}  // namespace

int silu_mul(const SiluMul& op, void* stream) {
  if (op.size == 0) return cudaSuccess;
  with_type(op.element, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    rematch_silu_mul_forward<T>
        <<<blocks_for(op.size), kThreads, 0, static_cast<cudaStream_t>(stream)>>>(op);
  });
  return cudaGetLastError();
}

int silu_mul_backward(const SiluMulBackward& op, void* stream) {
  if (op.size == 0) return cudaSuccess;
  with_type(op.element, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    rematch_silu_mul_backward<T>
        <<<blocks_for(op.size), kThreads, 0, static_cast<cudaStream_t>(stream)>>>(op);
  });
  return cudaGetLastError();
}

}  // namespace rematch::kernels::cuda
