#include "harness/measure/cuda_device.h"

namespace rematch {

bool linked_with_cuda() { return false; }

bool on_dry_device() { return false; }

std::optional<CudaDevice> cuda_device(int) { return std::nullopt; }

std::unique_ptr<GpuMonitor> open_gpu_monitor(int) { return nullptr; }

}  // namespace rematch
