// A fused op for a gated residual: rematch::gated_add and rematch::gated_add_backward. The op draws
// no random numbers and saves only branch and gate.
#pragma once

#include "kernels/op/kernel.h"

namespace rematch::fused {

// Returns x_BND + branch_BND * gate_B1D in x's dtype, rounded once. x and branch have the same
// dtype: float32, bfloat16 or float64. gate has the same dtype, or float32 if x is bfloat16. The
// result is contiguous. x's gradient is the result's gradient, so backward does not compute it.
// Second derivatives are not supported. Throws c10::Error if shapes or dtypes do not fit.
at::Tensor gated_add(const at::Tensor& x_BND, const at::Tensor& branch_BND,
                     const at::Tensor& gate_B1D);

}  // namespace rematch::fused

namespace rematch::kernels {

// x, branch and out are dense [batch, rows, width]. gate has one row of `width` elements per batch;
// its stride counts the elements from one batch to the next. `gate_element` is `element`, or
// kFloat32 if `element` is kBFloat16.
struct GatedAdd {
  Element element, gate_element;
  std::int64_t batch, rows, width, gate_stride;
  const void* x;
  const void* branch;
  const void* gate;
  void* out;
};

// Gradients are dense. `partial` has room for batch x num_row_blocks(rows) x width sums.
struct GatedAddBackward {
  GatedAdd forward;  // backward does not read x and out
  const void* grad_out;
  void* grad_branch;
  void* grad_gate;
  void* partial;
};

REMATCH_KERNELS(GatedAdd)
REMATCH_KERNELS(GatedAddBackward)

}  // namespace rematch::kernels
