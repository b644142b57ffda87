// Arguments of RMSNorm's kernels, and the kernels by instruction set and device. Private to this
// folder; without LibTorch headers, for nvcc.
#pragma once

#include "kernels/op/element.h"

namespace rematch::kernels {

// `rows` of `width` elements; strides are elements between rows. Null: no weight.
struct RmsNorm {
  Element element;
  std::int64_t rows, width, x_stride;
  double eps;
  const void* x;
  const void* weight;
  void* y;
};

// The rows of grad_x are dense. Null: no gradient of the weight asked for; else `partial` has room
// for num_row_blocks(rows) x width sums.
struct RmsNormBackward {
  RmsNorm forward;  // y is not read
  std::int64_t grad_stride;
  const void* grad_y;
  void* grad_x;
  void* grad_weight;
  void* partial;
};

namespace portable {
void rms_norm(const RmsNorm& op);
void rms_norm_backward(const RmsNormBackward& op);
}  // namespace portable
namespace avx2 {
void rms_norm(const RmsNorm& op);
void rms_norm_backward(const RmsNormBackward& op);
}  // namespace avx2
namespace avx512 {
void rms_norm(const RmsNorm& op);
void rms_norm_backward(const RmsNormBackward& op);
}  // namespace avx512
namespace cuda {
int rms_norm(const RmsNorm& op, void* stream);
int rms_norm_backward(const RmsNormBackward& op, void* stream);
}  // namespace cuda

}  // namespace rematch::kernels
