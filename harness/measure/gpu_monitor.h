// The driver's facts about one GPU: model, links, and its state at the moment. No
// CUDA context is made. Fields that the driver does not give stay absent.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reports/record/environment.h"
#include "reports/record/point.h"

namespace rematch {

// The part of NVIDIA's management library that is used, as a table: filled from the driver's
// library where there is one, or by tests. Declared here because no package of LibTorch or CUDA
// brings its header; names, numbers and structs are NVML's published interface.

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
  int (*device_of_uuid)(const char*, NvmlDevice**) = nullptr;
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
  Number gpu_instance = nullptr;  // of a MIG instance's handle
  int (*nvlink_state)(NvmlDevice*, unsigned, int*) = nullptr;
};

// Nothing without a driver. What an old driver lacks stays null, and is asked for by nobody.
std::optional<NvmlFunctions> load_nvml(const char* library = "libnvidia-ml.so.1");

// The GPU at one moment.
struct GpuReading {
  std::optional<int> sm_clock_mhz;
  std::optional<int> memory_clock_mhz;
  std::optional<int> temperature_celsius;
  std::optional<std::uint64_t> throttle_mask;
  std::optional<int> other_processes;
};

class GpuMonitor {
 public:
  // `pci_bus_id` as CUDA spells it, `uuid` as gpu_uuid(). Null where NVML does not start or does
  // not know the device. A MIG instance has the PCI id of its GPU, so the UUID says which instance
  // it is.
  static std::unique_ptr<GpuMonitor> open(const NvmlFunctions& functions,
                                          const std::string& pci_bus_id,
                                          const std::string& uuid = {});
  ~GpuMonitor();
  GpuMonitor(const GpuMonitor&) = delete;
  GpuMonitor& operator=(const GpuMonitor&) = delete;

  // `own_context`: this process computes on the device, so one process there is itself. In a
  // container the driver's process ids are another namespace's, so they are only counted.
  enum class OwnContext { kNo, kYes };
  GpuReading read(OwnContext own_context) const;
  // Fills what belongs to the device; the rest of the environment stays as it is.
  void describe(Environment& environment) const;

 private:
  GpuMonitor(const NvmlFunctions& functions, NvmlDevice* device, std::string pci_bus_id,
             const std::string& uuid);
  bool is_in_mig_mode() const;
  std::optional<std::vector<NvmlProcess>> processes_on(NvmlDevice* device) const;
  std::optional<int> num_processes() const;
  std::optional<int> num_processes_of_instance() const;
  int num_nvlinks() const;

  NvmlFunctions functions_;
  NvmlDevice* device_;              // the whole GPU
  NvmlDevice* instance_ = nullptr;  // the MIG instance, if this is one that NVML knows
  std::optional<unsigned> gpu_instance_;
  std::string pci_bus_id_;
};

// "GPU-8d7f..." as nvidia-smi prints it; "MIG-..." if `name`, which CUDA gave the device, is that
// of a MIG instance: "NVIDIA H100 80GB HBM3 MIG 1g.10gb".
std::string gpu_uuid(const std::string& name, const std::array<unsigned char, 16>& bytes);

// "535.104.05", from the kernel module that is loaded, or from NVML: some containers have no /proc
// of the driver. Nothing without one.
std::optional<std::string> nvidia_driver_version();
std::optional<std::string> driver_version_in(const std::string& module_file);
std::optional<std::string> driver_version_of(const NvmlFunctions& functions);

// A warning for a user about to measure on a GPU that others use; nothing if nobody does.
std::optional<std::string> shared_gpu_warning(const Environment& environment);

// Summarizes the readings of one timed round: least clocks, everything that ever throttled. Clocks
// of an idle GPU count only if it was idle in all readings. Pure.
DeviceStateRecord summarize_readings(const std::vector<GpuReading>& readings);

// "sw_power_cap", by NVML's bits; being idle between two steps is no reason.
std::vector<std::string> throttle_reason_names(std::uint64_t mask);

// Which CUPTI kernels would be counted with. Asks the library for its version and for nothing else,
// so it needs no driver and disturbs no measurement.

// The library of the version that this code is written for; LibTorch ships it.
inline constexpr const char* kCuptiLibrary = "libcupti.so.13";

// "13.0.1", the last number being the update; nothing where the library is not there.
std::optional<std::string> cupti_version(const char* library = kCuptiLibrary);

}  // namespace rematch
