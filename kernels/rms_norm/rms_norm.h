// RMSNorm as one op on every device: rematch::rms_norm forward, rematch::rms_norm_backward
// backward. It draws nothing, and saves nothing but its inputs.
#pragma once

#include <ATen/core/Tensor.h>

namespace rematch::fused {

// x * rsqrt(mean(x^2, last dim) + eps) * weight, [..., D] and [D] of one dtype: float32, bfloat16
// or float64. An undefined weight is none. A bfloat16 x is rounded once, at the end. The result is
// contiguous. Differentiable once. Throws c10::Error if shapes or dtypes do not fit.
at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps);

}  // namespace rematch::fused
