// A fused op for a linear's bias and the GELU that follows: rematch::bias_gelu and
// rematch::bias_gelu_backward, which also sums the bias's gradient. The op draws no random numbers
// and saves only its inputs.
#pragma once

#include "kernels/op/kernel.h"

namespace rematch::fused {

// Returns gelu(x + bias) with GELU's tanh approximation. x is [..., F] and bias is [F], of one
// dtype: float32, bfloat16 or float64. A bfloat16 result is rounded once. The result is contiguous.
// Second derivatives are not supported. Throws c10::Error if shapes or dtypes do not fit.
at::Tensor bias_gelu(const at::Tensor& x, const at::Tensor& bias);

}  // namespace rematch::fused

namespace rematch::kernels {

// x and y are dense [rows, width].
struct BiasGelu {
  Element element;
  std::int64_t rows, width;
  const void* x;
  const void* bias;
  void* y;
};

// Gradients are dense. grad_bias and `partial` are null if no bias gradient is needed. Otherwise
// `partial` has room for num_row_blocks(rows) x width sums.
struct BiasGeluBackward {
  BiasGelu forward;  // backward does not read y
  const void* grad_y;
  void* grad_x;
  void* grad_bias;
  void* partial;
};

REMATCH_KERNELS(BiasGelu)
REMATCH_KERNELS(BiasGeluBackward)

}  // namespace rematch::kernels
