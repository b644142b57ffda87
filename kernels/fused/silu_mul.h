// Fused ops for the gate of SwiGLU, each with its backward: rematch::silu_mul, and
// rematch::packed_silu_mul for a gate and an up from one packed weight. The ops draw no random
// numbers and save only their inputs.
#pragma once

#include "kernels/op/kernel.h"

namespace rematch::fused {

// Returns silu(gate) * up. gate and up have one shape and one dtype: float32, bfloat16 or float64.
// A bfloat16 result is rounded once. The result is contiguous. Second derivatives are not
// supported. Throws c10::Error if shapes or dtypes do not fit.
at::Tensor silu_mul(const at::Tensor& gate, const at::Tensor& up);

// Returns silu_mul(gate, up) where each row of x_T2F holds a row of the gate, then a row of up. The
// bits are those of silu_mul. The gradient is one tensor, so backward copies nothing.
at::Tensor packed_silu_mul(const at::Tensor& x_T2F);

}  // namespace rematch::fused

namespace rematch::kernels {

// grad_out and out are dense and have `size` elements. So have the other arrays, if `width` is 0.
// Otherwise these consist of rows of `width` elements, which begin 2 * width elements apart.
struct SiluMul {
  Element element;
  std::int64_t size;
  const void* gate;
  const void* up;
  void* out;
  std::int64_t width = 0;
};

struct SiluMulBackward {
  Element element;
  std::int64_t size;
  const void* grad_out;
  const void* gate;
  const void* up;
  void* grad_gate;
  void* grad_up;
  std::int64_t width = 0;
};

REMATCH_KERNELS(SiluMul)
REMATCH_KERNELS(SiluMulBackward)

}  // namespace rematch::kernels
