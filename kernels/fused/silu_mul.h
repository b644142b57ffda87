// A fused op for the gate of SwiGLU: rematch::silu_mul and rematch::silu_mul_backward. The op draws
// no random numbers and saves only its inputs.
#pragma once

#include "kernels/op/kernel.h"

namespace rematch::fused {

// Returns silu(gate) * up. gate and up have one shape and one dtype: float32, bfloat16 or float64.
// A bfloat16 result is rounded once. The result is contiguous. Second derivatives are not
// supported. Throws c10::Error if shapes or dtypes do not fit.
at::Tensor silu_mul(const at::Tensor& gate, const at::Tensor& up);

}  // namespace rematch::fused

namespace rematch::kernels {

// All arrays are dense and have `size` elements.
struct SiluMul {
  Element element;
  std::int64_t size;
  const void* gate;
  const void* up;
  void* out;
};

struct SiluMulBackward {
  Element element;
  std::int64_t size;
  const void* grad_out;
  const void* gate;
  const void* up;
  void* grad_gate;
  void* grad_up;
};

REMATCH_KERNELS(SiluMul)
REMATCH_KERNELS(SiluMulBackward)

}  // namespace rematch::kernels
