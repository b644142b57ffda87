// A fused op for rotary position embedding: rematch::rope and rematch::rope_backward. The op draws
// no random numbers and saves only the cosines and sines.
#pragma once

#include "kernels/op/kernel.h"

namespace rematch::fused {

// Rotates each pair (2i, 2i+1) of x_BSHD by its token's angle. cosine and sine are float32
// constants, [S, 1, D / 2]. float32 and bfloat16 are rotated in float32, and float64 in float64.
// The result is contiguous. Second derivatives are not supported. Throws c10::Error if shapes or
// dtypes do not fit.
at::Tensor rope(const at::Tensor& x_BSHD, const at::Tensor& cosine, const at::Tensor& sine);

}  // namespace rematch::fused

namespace rematch::kernels {

// Strides count elements of x, whose last dimension is dense; out is dense. cosine and sine are
// [tokens, pairs]: float for float32 and bfloat16, double for float64.
struct Rope {
  Element element;
  std::int64_t batch, tokens, heads, pairs;
  std::int64_t batch_stride, token_stride, head_stride;
  double direction;  // 1 rotates forward, -1 rotates back
  const void* x;
  const void* cosine;
  const void* sine;
  void* out;
};

REMATCH_KERNELS(Rope)

}  // namespace rematch::kernels
