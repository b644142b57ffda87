// Describes the CUDA device, as the CUDA runtime reports it. In a program linked without CUDA
// (no_cuda_device.cpp) there is no device. These functions create no CUDA context, so they allocate
// no memory on the device.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "harness/measure/gpu_monitor.h"
#include "policies/base/bytes.h"

namespace rematch {

struct CudaDevice {
  std::string name;
  std::string uuid;        // result of gpu_uuid()
  std::string pci_bus_id;  // "0000:17:00.0"
  std::string compute_capability;
  Bytes memory;
  int multiprocessors = 0;
  std::string runtime_version;
  std::string driver_version;  // version of the newest CUDA that the driver supports
};

// Returns whether this program is linked with CUDA.
bool linked_with_cuda();

// Returns whether the program's CUDA is the dry device, which runs no kernels. On the dry device,
// values, losses and times are meaningless.
bool on_dry_device();

std::optional<CudaDevice> cuda_device(int index = 0);

// Returns null without a device, a driver or NVML.
std::unique_ptr<GpuMonitor> open_gpu_monitor(int index = 0);

}  // namespace rematch
