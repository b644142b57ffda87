// A fused op for RMSNorm: rematch::rms_norm and rematch::rms_norm_backward. The op draws no random
// numbers and saves only its inputs.
#pragma once

#include "kernels/op/kernel.h"

namespace rematch::fused {

// Returns x * rsqrt(mean(x^2, last dim) + eps) * weight. x is [..., D] and weight is [D], of one
// dtype: float32, bfloat16 or float64. An undefined weight is not applied. A bfloat16 result is
// rounded once. The result is contiguous. Second derivatives are not supported. Throws c10::Error
// if shapes or dtypes do not fit.
at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps);

}  // namespace rematch::fused

namespace rematch::kernels {

// `rows` rows of `width` elements. Strides count elements between rows. A null weight is not
// applied.
struct RmsNorm {
  Element element;
  std::int64_t rows, width, x_stride;
  double eps;
  const void* x;
  const void* weight;
  void* y;
};

// The rows of grad_x are dense. grad_weight and `partial` are null if no weight gradient is needed.
// Otherwise `partial` has room for num_row_blocks(rows) x width sums.
struct RmsNormBackward {
  RmsNorm forward;  // backward does not read y
  std::int64_t grad_stride;
  const void* grad_y;
  void* grad_x;
  void* grad_weight;
  void* partial;
};

REMATCH_KERNELS(RmsNorm)
REMATCH_KERNELS(RmsNormBackward)

}  // namespace rematch::kernels
