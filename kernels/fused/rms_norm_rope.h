// A fused op for RMSNorm followed by rotary position embedding: rematch::rms_norm_rope and
// rematch::rms_norm_rope_backward. The op draws no random numbers and saves only its inputs.
#pragma once

#include "kernels/op/kernel.h"

namespace rematch::fused {

// Normalises x_BSD over its last dimension, as rms_norm() does, then rotates each pair (2i, 2i+1)
// of each head by its token's angle, as rope() does. x [B, S, D] and weight [D] have one dtype:
// float32, bfloat16 or float64. cosine and sine are float32 constants, [S, 1, P]; heads have 2P
// elements, and 2P divides D. A bfloat16 result is rounded once. The result is contiguous. Second
// derivatives are not supported. Throws c10::Error if shapes or dtypes do not fit.
at::Tensor rms_norm_rope(const at::Tensor& x_BSD, const at::Tensor& weight_D,
                         const at::Tensor& cosine, const at::Tensor& sine, double eps);

}  // namespace rematch::fused

namespace rematch::kernels {

// `rows` rows of `width` elements; row r belongs to token r % tokens. x_stride counts elements
// between rows of x; y is dense. cosine and sine are [tokens, pairs]: float for float32 and
// bfloat16, double for float64.
struct RmsNormRope {
  Element element;
  std::int64_t rows, tokens, width, pairs, x_stride;
  double eps;
  const void* x;
  const void* weight;
  const void* cosine;
  const void* sine;
  void* y;
};

// The rows of grad_x are dense. grad_weight and `partial` are null if no weight gradient is needed.
// Otherwise `partial` has room for num_row_blocks(rows) x width sums.
struct RmsNormRopeBackward {
  RmsNormRope forward;  // backward does not read y
  std::int64_t grad_stride;
  const void* grad_y;
  void* grad_x;
  void* grad_weight;
  void* partial;
};

REMATCH_KERNELS(RmsNormRope)
REMATCH_KERNELS(RmsNormRopeBackward)

}  // namespace rematch::kernels
