// The driver's facts about one GPU: model, links and current state. Creates no CUDA context. Fields
// that the driver does not report stay absent.
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

// The functions of NVIDIA's management library (NVML) that are used here. The driver's library or a
// test supplies them. No package of LibTorch or CUDA contains NVML's header, so this file declares
// names, numbers and structs from NVML's published interface.

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
  Number power_limit = nullptr;          // the limit that the driver enforces, in milliwatts
  Number default_power_limit = nullptr;  // milliwatts
  Number pcie_generation = nullptr;
  Number pcie_width = nullptr;
  Number most_pcie_generation = nullptr;
  Number most_pcie_width = nullptr;
  int (*ecc_mode)(NvmlDevice*, int*, int*) = nullptr;
  int (*persistence_mode)(NvmlDevice*, int*) = nullptr;
  int (*mig_mode)(NvmlDevice*, unsigned*, unsigned*) = nullptr;
  Number gpu_instance = nullptr;  // takes the handle of a MIG instance, not of the whole GPU
  int (*nvlink_state)(NvmlDevice*, unsigned, int*) = nullptr;
};

// Loads NVML. Absent without a driver. Functions that an old driver lacks stay null and are never
// called.
std::optional<NvmlFunctions> load_nvml(const char* library = "libnvidia-ml.so.1");

// The state of the GPU at one moment.
struct GpuReading {
  std::optional<int> sm_clock_mhz;
  std::optional<int> memory_clock_mhz;
  std::optional<int> temperature_celsius;
  std::optional<std::uint64_t> throttle_mask;
  std::optional<int> other_processes;
};

class GpuMonitor {
 public:
  // Opens a device. `pci_bus_id` has CUDA's spelling. `uuid` comes from gpu_uuid(), and tells the
  // MIG instances of a GPU apart, because they share its PCI id. Returns null if NVML does not
  // start or does not know the device.
  static std::unique_ptr<GpuMonitor> open(const NvmlFunctions& functions,
                                          const std::string& pci_bus_id,
                                          const std::string& uuid = {});
  ~GpuMonitor();
  GpuMonitor(const GpuMonitor&) = delete;
  GpuMonitor& operator=(const GpuMonitor&) = delete;

  // `own_context` is kYes if this process uses the device. The count of other processes is then one
  // lower. Process ids cannot identify this process, because in a container the driver's ids belong
  // to another namespace.
  enum class OwnContext { kNo, kYes };
  GpuReading read(OwnContext own_context) const;
  // Fills the fields of the device and leaves the rest of the environment unchanged.
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
  NvmlDevice* device_;  // handle of the whole GPU
  NvmlDevice* instance_ =
      nullptr;  // handle of the MIG instance, if the device is a MIG instance that NVML knows
  std::optional<unsigned> gpu_instance_;
  std::string pci_bus_id_;
};

// Returns a UUID as nvidia-smi prints it, such as "GPU-8d7f...", or "MIG-..." for a MIG instance.
// `name` is CUDA's name of the device. A MIG instance has a name such as "NVIDIA H100 80GB HBM3 MIG
// 1g.10gb".
std::string gpu_uuid(const std::string& name, const std::array<unsigned char, 16>& bytes);

// Returns a version such as "535.104.05", from the loaded kernel module or, in a container without
// the driver's files in /proc, from NVML. Absent without a driver.
std::optional<std::string> nvidia_driver_version();
std::optional<std::string> driver_version_in(const std::string& module_file);
std::optional<std::string> driver_version_of(const NvmlFunctions& functions);

// Returns a warning if other processes use the GPU on which the user is about to measure. Absent if
// no other process uses the GPU.
std::optional<std::string> shared_gpu_warning(const Environment& environment);

// Summarizes the readings of one timed round: the lowest clocks, and all reasons for throttling.
// Ignores the clocks of an idle GPU, unless the GPU was idle at every reading. Pure.
DeviceStateRecord summarize_readings(const std::vector<GpuReading>& readings);

// Returns NVML's names of the set bits, such as "sw_power_cap". Excludes the bit of an idle GPU,
// because a GPU also idles between two steps.
std::vector<std::string> throttle_reason_names(std::uint64_t mask);

// The name of the CUPTI library that LibTorch ships and this code supports.
inline constexpr const char* kCuptiLibrary = "libcupti.so.13";

// Returns the version of the installed CUPTI library, such as "13.0.1", where 1 is the update.
// Absent if the library is missing. Needs no driver.
std::optional<std::string> cupti_version(const char* library = kCuptiLibrary);

}  // namespace rematch
