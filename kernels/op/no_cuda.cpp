// Replaces launch_cuda.cpp in programs that are linked without CUDA. The ops are registered for
// CUDA tensors there too, but such a program has none.
#include "kernels/op/op.h"

namespace rematch::kernels {

void launch_on_cuda(c10::Device device, const std::function<int(void* stream)>&) {
  TORCH_CHECK(false, "a fused op cannot run on ", device, ": this program is linked without CUDA");
}

}  // namespace rematch::kernels
