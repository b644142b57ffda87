// Fused ops for RMSNorm, each with its backward: rematch::rms_norm, and rematch::add_rms_norm with
// the residual add before it. The ops draw no random numbers. rms_norm saves only its inputs, and
// add_rms_norm only the weight and the sum.
#pragma once

#include <tuple>

#include "kernels/op/kernel.h"

namespace rematch::fused {

// Returns x * rsqrt(mean(x^2, last dim) + eps) * weight. x is [..., D] and weight is [D], of one
// dtype: float32, bfloat16 or float64. An undefined weight is not applied. A bfloat16 result is
// rounded once. The result is contiguous. Second derivatives are not supported. Throws c10::Error
// if shapes or dtypes do not fit.
at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps);

// Returns rms_norm(sum, weight, eps) and sum = x + branch, with the bits of an add followed by
// rms_norm(). x and branch have the same shape and dtype. Both results have a gradient. Backward
// adds the sum's gradient to the norm's, and rounds once.
std::tuple<at::Tensor, at::Tensor> add_rms_norm(const at::Tensor& x, const at::Tensor& branch,
                                                const at::Tensor& weight, double eps);

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
  // Only for add_rms_norm, otherwise null. The norm is taken of sum = x + branch; sum is dense.
  std::int64_t branch_stride = 0;
  const void* branch = nullptr;
  void* sum = nullptr;
};

// The rows of grad_x are dense. grad_weight and `partial` are null if no weight gradient is needed.
// Otherwise `partial` has room for num_row_blocks(rows) x width sums.
struct RmsNormBackward {
  RmsNorm forward;  // backward does not read y, branch and sum; x is the sum for add_rms_norm
  std::int64_t grad_stride;
  const void* grad_y;
  void* grad_x;
  void* grad_weight;
  void* partial;
  // The gradient of the sum of add_rms_norm, which is added to grad_x. Null if there is none.
  std::int64_t grad_sum_stride = 0;
  const void* grad_sum = nullptr;
};

REMATCH_KERNELS(RmsNorm)
REMATCH_KERNELS(RmsNormBackward)

}  // namespace rematch::kernels
