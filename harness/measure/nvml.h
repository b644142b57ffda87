// The part of NVIDIA's management library that is used, as a table: filled from the driver's
// library where there is one, or by tests. Declared here because no package of LibTorch or CUDA
// brings its header; names, numbers and structs are NVML's published interface.
#pragma once

#include <optional>

namespace rematch {

struct NvmlDevice;  // opaque

// nvmlProcessInfo_v2_t
struct NvmlProcess {
  unsigned pid = 0;
  unsigned long long used_bytes = 0;
  unsigned gpu_instance = 0;
  unsigned compute_instance = 0;
};

inline constexpr int kNvmlSuccess = 0;
inline constexpr int kNvmlInsufficientSize = 7;
enum NvmlClock : int { kNvmlSmClock = 1, kNvmlMemoryClock = 2 };

struct NvmlFunctions {
  using Number = int (*)(NvmlDevice*, unsigned*);
  int (*initialize)() = nullptr;
  int (*shut_down)() = nullptr;
  int (*driver_version)(char*, unsigned) = nullptr;
  int (*device_of_pci_bus_id)(const char*, NvmlDevice**) = nullptr;
  int (*clock)(NvmlDevice*, int, unsigned*) = nullptr;
  int (*most_clock)(NvmlDevice*, int, unsigned*) = nullptr;
  int (*throttle_reasons)(NvmlDevice*, unsigned long long*) = nullptr;
  int (*temperature)(NvmlDevice*, int, unsigned*) = nullptr;
  int (*processes)(NvmlDevice*, unsigned*, NvmlProcess*) = nullptr;
  Number power_limit = nullptr;          // milliwatts, as enforced
  Number default_power_limit = nullptr;  // milliwatts
  Number pcie_generation = nullptr;
  Number pcie_width = nullptr;
  Number most_pcie_generation = nullptr;
  Number most_pcie_width = nullptr;
  int (*ecc_mode)(NvmlDevice*, int*, int*) = nullptr;
  int (*persistence_mode)(NvmlDevice*, int*) = nullptr;
  int (*mig_mode)(NvmlDevice*, unsigned*, unsigned*) = nullptr;
  int (*nvlink_state)(NvmlDevice*, unsigned, int*) = nullptr;
};

// Nothing without a driver. What an old driver lacks stays null, and is asked for by nobody.
std::optional<NvmlFunctions> load_nvml(const char* library = "libnvidia-ml.so.1");

}  // namespace rematch
