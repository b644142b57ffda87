// A fused op for LayerNorm, with weights or with adaptive modulation: rematch::layer_norm and
// rematch::layer_norm_backward. The op draws no random numbers and saves only x and scale.
#pragma once

#include "kernels/op/kernel.h"

namespace rematch::fused {

// Returns (x - mean) / sqrt(variance + eps) * (offset + scale) + shift in x's dtype, rounded once.
// The statistics are of x's last dimension D. scale and shift are [D], or [B, 1, D] for an x of
// [B, N, D]. Offset 0 makes scale a weight and shift a bias; offset 1 is adaptive modulation. x is
// float32, bfloat16 or float64. scale and shift have x's dtype, or float32 if x is bfloat16. The
// result is contiguous. Second derivatives are not supported. Throws c10::Error if shapes or dtypes
// do not fit.
at::Tensor layer_norm(const at::Tensor& x, const at::Tensor& scale, const at::Tensor& shift,
                      double offset, double eps);

}  // namespace rematch::fused

namespace rematch::kernels {

// x and y are dense [batch, rows, width]. scale and shift have one row of `width` elements per
// batch; their strides count the elements from one batch to the next. `table_element` is the type
// of scale and shift: `element`, or kFloat32 if `element` is kBFloat16.
struct LayerNorm {
  Element element, table_element;
  std::int64_t batch, rows, width;
  std::int64_t scale_stride, shift_stride;
  double offset, eps;
  const void* x;
  const void* scale;
  const void* shift;
  void* y;
};

// Gradients are dense. `partial` has room for 2 x batch x num_row_blocks(rows) x width sums: first
// the sums of grad_scale, then the sums of grad_shift.
struct LayerNormBackward {
  LayerNorm forward;  // backward does not read shift and y
  const void* grad_y;
  void* grad_x;
  void* grad_scale;
  void* grad_shift;
  void* partial;
};

REMATCH_KERNELS(LayerNorm)
REMATCH_KERNELS(LayerNormBackward)

}  // namespace rematch::kernels
