#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include "kernels/op/op.h"

namespace rematch::kernels {

void launch_on_cuda(c10::Device device, const std::function<int(void* stream)>& kernel) {
  const c10::cuda::CUDAGuard guard(device);
  const int code = kernel(c10::cuda::getCurrentCUDAStream(device.index()).stream());
  TORCH_CHECK(code == 0, "a fused op's CUDA kernel failed: ",
              cudaGetErrorString(static_cast<cudaError_t>(code)));
}

}  // namespace rematch::kernels
