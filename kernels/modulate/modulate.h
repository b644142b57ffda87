// Adaptive modulation as one op on every device: rematch::modulate forward,
// rematch::modulate_backward backward. It draws nothing, and saves x and scale alone.
#pragma once

#include <ATen/core/Tensor.h>

namespace rematch::fused {

// x_BND * (1 + scale_B1D) + shift_B1D, as `dtype`. x, shift and scale are of one dtype: float32,
// bfloat16 or float64; `dtype` is theirs, or bfloat16 for float32. The result is contiguous, and
// rounded once. Differentiable once. Throws c10::Error if shapes or dtypes do not fit.
at::Tensor modulate(const at::Tensor& x_BND, const at::Tensor& shift_B1D,
                    const at::Tensor& scale_B1D, at::ScalarType dtype);

}  // namespace rematch::fused
