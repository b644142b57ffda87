// Rotary position embedding as one op on every device: rematch::rope forward,
// rematch::rope_backward backward. It draws nothing, and saves the table alone.
#pragma once

#include <ATen/core/Tensor.h>

namespace rematch::fused {

// Each pair (2i, 2i+1) of x_BSHD turned by the angle of its token: cosine and sine are float32
// constants, [S, 1, D / 2], whatever the angles come from (one axis or a video's three). x is
// float32, bfloat16 or float64, turned in float32 or float64. The result is contiguous.
// Differentiable once. Throws c10::Error if shapes or dtypes do not fit.
at::Tensor rope(const at::Tensor& x_BSHD, const at::Tensor& cosine, const at::Tensor& sine);

}  // namespace rematch::fused
