#include "harness/measure/cuda_device.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <array>
#include <cstring>

namespace rematch {
namespace {

// Formats CUDA's version numbers. For example 13000 means 13.0.
std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

}  // namespace

bool linked_with_cuda() { return true; }

// The dry device exports this function in addition to CUDA's.
bool on_dry_device() { return dlsym(RTLD_DEFAULT, "dry_cuda_size") != nullptr; }

std::optional<CudaDevice> cuda_device(int index) {
  cudaDeviceProp properties{};
  if (cudaGetDeviceProperties(&properties, index) != cudaSuccess) {
    cudaGetLastError();  // clears the error; otherwise the next unrelated CUDA call would report it
    return std::nullopt;
  }
  CudaDevice device;
  device.name = properties.name;
  std::array<unsigned char, 16> uuid{};
  static_assert(sizeof properties.uuid.bytes == uuid.size());
  std::memcpy(uuid.data(), properties.uuid.bytes, uuid.size());
  device.uuid = gpu_uuid(device.name, uuid);
  std::array<char, 32> bus_id{};
  if (cudaDeviceGetPCIBusId(bus_id.data(), static_cast<int>(bus_id.size()), index) == cudaSuccess) {
    device.pci_bus_id = bus_id.data();
  }
  device.compute_capability =
      std::to_string(properties.major) + "." + std::to_string(properties.minor);
  device.memory = Bytes{static_cast<std::int64_t>(properties.totalGlobalMem)};
  device.multiprocessors = properties.multiProcessorCount;
  int version = 0;
  if (cudaRuntimeGetVersion(&version) == cudaSuccess)
    device.runtime_version = version_text(version);
  if (cudaDriverGetVersion(&version) == cudaSuccess) device.driver_version = version_text(version);
  return device;
}

std::unique_ptr<GpuMonitor> open_gpu_monitor(int index) {
  if (on_dry_device()) return nullptr;  // the dry device has no driver
  const std::optional<CudaDevice> device = cuda_device(index);
  if (!device) return nullptr;
  const std::optional<NvmlFunctions> functions = load_nvml();
  return functions ? GpuMonitor::open(*functions, device->pci_bus_id, device->uuid) : nullptr;
}

}  // namespace rematch
