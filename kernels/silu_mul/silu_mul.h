// SwiGLU's gate as one op on every device: rematch::silu_mul forward, rematch::silu_mul_backward
// backward. It draws nothing, and saves nothing but its inputs.
#pragma once

#include <ATen/core/Tensor.h>

namespace rematch::fused {

// silu(gate) * up, of one shape and dtype: float32, bfloat16 or float64. A bfloat16 result is
// rounded once. The result is contiguous. Differentiable once. Throws c10::Error if shapes or
// dtypes do not fit.
at::Tensor silu_mul(const at::Tensor& gate, const at::Tensor& up);

}  // namespace rematch::fused
