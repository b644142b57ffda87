// Each thread handles 16 bytes of elements, or one element if the size or the alignment does not
// allow accesses of 16 bytes.
#include "kernels/fused/silu_mul.h"
#include "kernels/op/device.cuh"

namespace rematch::kernels::cuda {
namespace {

template <typename Sum>
__device__ Sum sigmoid(Sum x) {
  return Sum(1) / (Sum(1) + exp(-x));
}

// Returns where element `index` of the dense arrays lies in the other arrays.
template <typename Op>
__device__ std::int64_t gate_index(const Op& op, std::int64_t index) {
  return op.width == 0 ? index : index + index / op.width * op.width;
}

template <typename T, int kCount>
__global__ void rematch_silu_mul_forward(SiluMul op) {
  using Sum = SumOf<T>;
  const std::int64_t first = (std::int64_t{blockIdx.x} * kThreads + threadIdx.x) * kCount;
  if (first >= op.size) return;
  const std::int64_t of_gate = gate_index(op, first);
  Sum gate[kCount];
  Sum up[kCount];
  load_lanes(static_cast<const T*>(op.gate) + of_gate, gate);
  load_lanes(static_cast<const T*>(op.up) + of_gate, up);
  for (int lane = 0; lane < kCount; ++lane) up[lane] *= gate[lane] * sigmoid(gate[lane]);
  store_lanes(up, static_cast<T*>(op.out) + first);
}

// The derivative of silu(gate) is s * (1 + gate * (1 - s)), where s = sigmoid(gate).
template <typename T, int kCount>
__global__ void rematch_silu_mul_backward(SiluMulBackward op) {
  using Sum = SumOf<T>;
  const std::int64_t first = (std::int64_t{blockIdx.x} * kThreads + threadIdx.x) * kCount;
  if (first >= op.size) return;
  const std::int64_t of_gate = gate_index(op, first);
  Sum gate[kCount];
  Sum up[kCount];
  Sum grad[kCount];
  load_lanes(static_cast<const T*>(op.gate) + of_gate, gate);
  load_lanes(static_cast<const T*>(op.up) + of_gate, up);
  load_lanes(static_cast<const T*>(op.grad_out) + first, grad);
  Sum grad_up[kCount];
  Sum grad_gate[kCount];
  for (int lane = 0; lane < kCount; ++lane) {
    const Sum s = sigmoid(gate[lane]);
    grad_up[lane] = grad[lane] * gate[lane] * s;
    grad_gate[lane] = grad[lane] * up[lane] * (s * (Sum(1) + gate[lane] * (Sum(1) - s)));
  }
  store_lanes(grad_up, static_cast<T*>(op.grad_up) + of_gate);
  store_lanes(grad_gate, static_cast<T*>(op.grad_gate) + of_gate);
}

}  // namespace

int run(const SiluMul& op, void* stream) {
  if (op.size == 0) return cudaSuccess;
  const auto on = static_cast<cudaStream_t>(stream);
  with_type(op.element, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    const bool wide =
        are_multiples(kLanes<T>, op.size, op.width) && are_aligned(op.gate, op.up, op.out);
    with_lanes<T>(wide, [&](auto lanes) {
      constexpr int kCount = lanes;
      const unsigned blocks = blocks_for(op.size / kCount);
      rematch_silu_mul_forward<T, kCount><<<blocks, kThreads, 0, on>>>(op);
    });
  });
  return cudaGetLastError();
}

int run(const SiluMulBackward& op, void* stream) {
  if (op.size == 0) return cudaSuccess;
  const auto on = static_cast<cudaStream_t>(stream);
  with_type(op.element, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    const bool wide = are_multiples(kLanes<T>, op.size, op.width) &&
                      are_aligned(op.gate, op.up, op.grad_out, op.grad_gate, op.grad_up);
    with_lanes<T>(wide, [&](auto lanes) {
      constexpr int kCount = lanes;
      const unsigned blocks = blocks_for(op.size / kCount);
      rematch_silu_mul_backward<T, kCount><<<blocks, kThreads, 0, on>>>(op);
    });
  });
  return cudaGetLastError();
}

}  // namespace rematch::kernels::cuda
