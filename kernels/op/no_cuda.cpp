// Replaces launch_cuda.cpp in programs that are linked without CUDA. In such a program the ops are
// still registered for CUDA tensors, but no tensor can be on CUDA.
#include "kernels/op/op.h"

namespace rematch::kernels {

void launch_on_cuda(c10::Device device, const std::function<int(void* stream)>&) {
  TORCH_CHECK(false, "a fused op cannot run on ", device, ": this program is linked without CUDA");
}

}  // namespace rematch::kernels
