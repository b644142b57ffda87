// Arguments of rotary embedding's kernel, and the kernel by instruction set and device. Private to
// this folder; without LibTorch headers, for nvcc.
#pragma once

#include "kernels/op/element.h"

namespace rematch::kernels {

// x's strides in elements, its last dimension dense; out is dense. The table is [tokens, pairs], of
// float for float32 and bfloat16, of double for float64.
struct Rope {
  Element element;
  std::int64_t batch, tokens, heads, pairs;
  std::int64_t batch_stride, token_stride, head_stride;
  double direction;  // 1 turns, -1 turns back
  const void* x;
  const void* cosine;
  const void* sine;
  void* out;
};

namespace portable {
void rope(const Rope& op);
}  // namespace portable
namespace avx2 {
void rope(const Rope& op);
}  // namespace avx2
namespace avx512 {
void rope(const Rope& op);
}  // namespace avx512
namespace cuda {
int rope(const Rope& op, void* stream);
}  // namespace cuda

}  // namespace rematch::kernels
