// The CUDA device that points run on, as its runtime describes it. A program that is linked without
// CUDA (no_cuda_device.cpp) has none. Makes no context, so asking holds no memory on the device.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "harness/measure/gpu_monitor.h"
#include "policies/base/bytes.h"

namespace rematch {

struct CudaDevice {
  std::string name;
  std::string uuid;        // as gpu_uuid()
  std::string pci_bus_id;  // "0000:17:00.0"
  std::string compute_capability;
  Bytes memory;
  int multiprocessors = 0;
  std::string runtime_version;
  std::string driver_version;  // the newest CUDA that the driver runs
};

// Is this program linked with CUDA?
bool linked_with_cuda();

// Is its CUDA the dry device, which runs no kernel? There values, losses and times mean nothing.
bool on_dry_device();

std::optional<CudaDevice> cuda_device(int index = 0);

// Null without a device, a driver or NVML.
std::unique_ptr<GpuMonitor> open_gpu_monitor(int index = 0);

}  // namespace rematch
