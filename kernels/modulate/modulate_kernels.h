// Arguments of modulation's kernels, and the kernels by instruction set and device. Private to this
// folder; without LibTorch headers, for nvcc.
#pragma once

#include "kernels/op/element.h"

namespace rematch::kernels {

// x and out are dense [batch, rows, width]; a stride is between the batches of a table of rows of
// `width` elements. `element` is x's and the tables'; `out_element` is the same, or kBFloat16
// for kFloat32.
struct Modulate {
  Element element, out_element;
  std::int64_t batch, rows, width;
  std::int64_t shift_stride, scale_stride;
  const void* x;
  const void* shift;
  const void* scale;
  void* out;
};

// Gradients are dense. `partial` has room for 2 x batch x num_row_blocks(rows) x width sums: those
// of grad_shift, then those of grad_scale.
struct ModulateBackward {
  Modulate forward;      // shift and out are not read
  const void* grad_out;  // dense, of out_element
  void* grad_x;
  void* grad_shift;
  void* grad_scale;
  void* partial;
};

namespace portable {
void modulate(const Modulate& op);
void modulate_backward(const ModulateBackward& op);
}  // namespace portable
namespace avx2 {
void modulate(const Modulate& op);
void modulate_backward(const ModulateBackward& op);
}  // namespace avx2
namespace avx512 {
void modulate(const Modulate& op);
void modulate_backward(const ModulateBackward& op);
}  // namespace avx512
namespace cuda {
int modulate(const Modulate& op, void* stream);
int modulate_backward(const ModulateBackward& op, void* stream);
}  // namespace cuda

}  // namespace rematch::kernels
