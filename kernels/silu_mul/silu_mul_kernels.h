// Arguments of SwiGLU's kernels, and the kernels by instruction set and device. Private to this
// folder; without LibTorch headers, for nvcc.
#pragma once

#include "kernels/op/element.h"

namespace rematch::kernels {

// All of `size` elements, dense.
struct SiluMul {
  Element element;
  std::int64_t size;
  const void* gate;
  const void* up;
  void* out;
};

struct SiluMulBackward {
  Element element;
  std::int64_t size;
  const void* grad_out;
  const void* gate;
  const void* up;
  void* grad_gate;
  void* grad_up;
};

namespace portable {
void silu_mul(const SiluMul& op);
void silu_mul_backward(const SiluMulBackward& op);
}  // namespace portable
namespace avx2 {
void silu_mul(const SiluMul& op);
void silu_mul_backward(const SiluMulBackward& op);
}  // namespace avx2
namespace avx512 {
void silu_mul(const SiluMul& op);
void silu_mul_backward(const SiluMulBackward& op);
}  // namespace avx512
namespace cuda {
int silu_mul(const SiluMul& op, void* stream);
int silu_mul_backward(const SiluMulBackward& op, void* stream);
}  // namespace cuda

}  // namespace rematch::kernels
