// Rotary position embedding as one op on every device: rematch::rope forward,
// rematch::rope_backward backward. It draws nothing, and saves the table alone.
#pragma once

#include "kernels/op/kernel.h"

namespace rematch::fused {

// Each pair (2i, 2i+1) of x_BSHD turned by the angle of its token: cosine and sine are float32
// constants, [S, 1, D / 2], whatever the angles come from (one axis or a video's three). x is
// float32, bfloat16 or float64, turned in float32 or float64. The result is contiguous.
// Differentiable once. Throws c10::Error if shapes or dtypes do not fit.
at::Tensor rope(const at::Tensor& x_BSHD, const at::Tensor& cosine, const at::Tensor& sine);

}  // namespace rematch::fused

namespace rematch::kernels {

// x's strides in elements, its last dimension dense; out is dense. The table is [tokens, pairs], of
// float for float32 and bfloat16, of double for float64.
struct Rope {
  Element element;
  std::int64_t batch, tokens, heads, pairs;
  std::int64_t batch_stride, token_stride, head_stride;
  double direction;  // 1 turns, -1 turns back
  const void* x;
  const void* cosine;
  const void* sine;
  void* out;
};

REMATCH_KERNELS(Rope)

}  // namespace rematch::kernels
