// A fused op for adaptive modulation: rematch::modulate and rematch::modulate_backward. The op
// draws no random numbers and saves only x and scale.
#pragma once

#include "kernels/op/kernel.h"

namespace rematch::fused {

// Returns x_BND * (1 + scale_B1D) + shift_B1D as `dtype`. x, shift and scale have one dtype:
// float32, bfloat16 or float64. `dtype` is the same dtype, or bfloat16 if x is float32. The result
// is contiguous and rounded once. Second derivatives are not supported. Throws c10::Error if shapes
// or dtypes do not fit.
at::Tensor modulate(const at::Tensor& x_BND, const at::Tensor& shift_B1D,
                    const at::Tensor& scale_B1D, c10::ScalarType dtype);

}  // namespace rematch::fused

namespace rematch::kernels {

// x and out are dense [batch, rows, width]. shift and scale have one row of `width` elements per
// batch; their strides count the elements from one batch to the next. `element` is the type of x,
// shift and scale. `out_element` is the same type, or kBFloat16 if `element` is kFloat32.
struct Modulate {
  Element element, out_element;
  std::int64_t batch, rows, width;
  std::int64_t shift_stride, scale_stride;
  const void* x;
  const void* shift;
  const void* scale;
  void* out;
};

// Gradients are dense. `partial` has room for 2 x batch x num_row_blocks(rows) x width sums: first
// the sums of grad_shift, then the sums of grad_scale.
struct ModulateBackward {
  Modulate forward;      // backward does not read shift and out
  const void* grad_out;  // dense array of type out_element
  void* grad_x;
  void* grad_shift;
  void* grad_scale;
  void* partial;
};

REMATCH_KERNELS(Modulate)
REMATCH_KERNELS(ModulateBackward)

}  // namespace rematch::kernels
