// Stands in for the CUDA kernels of all fused ops in programs that are linked without CUDA. There
// the ops are registered for CUDA tensors, of which such a program has none.
#include <c10/util/Exception.h>

#include "kernels/linear_cross_entropy/linear_cross_entropy_kernels.h"
#include "kernels/modulate/modulate_kernels.h"
#include "kernels/op/launch.h"
#include "kernels/rms_norm/rms_norm_kernels.h"
#include "kernels/rope/rope_kernels.h"
#include "kernels/silu_mul/silu_mul_kernels.h"

namespace rematch::kernels {

void launch_on_cuda(c10::Device device, const std::function<int(void* stream)>&) {
  TORCH_CHECK(false, "a fused op cannot run on ", device, ": this program is linked without CUDA");
}

namespace cuda {

constexpr int kNoDevice = 100;  // cudaErrorNoDevice

int add_logits(const LogitChunk&, void*) { return kNoDevice; }
int differentiate_logits(const LogitChunkBackward&, void*) { return kNoDevice; }
int modulate(const Modulate&, void*) { return kNoDevice; }
int modulate_backward(const ModulateBackward&, void*) { return kNoDevice; }
int rms_norm(const RmsNorm&, void*) { return kNoDevice; }
int rms_norm_backward(const RmsNormBackward&, void*) { return kNoDevice; }
int rope(const Rope&, void*) { return kNoDevice; }
int silu_mul(const SiluMul&, void*) { return kNoDevice; }
int silu_mul_backward(const SiluMulBackward&, void*) { return kNoDevice; }

}  // namespace cuda
}  // namespace rematch::kernels
