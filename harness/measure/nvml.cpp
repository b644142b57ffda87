#include "harness/measure/nvml.h"

#include <dlfcn.h>

#include <type_traits>

namespace rematch {

std::optional<NvmlFunctions> load_nvml(const char* library) {
  void* handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return std::nullopt;
  const auto find = [handle](const char* name, auto& function) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(handle, name));
  };
  NvmlFunctions functions;
  find("nvmlInit_v2", functions.initialize);
  find("nvmlShutdown", functions.shut_down);
  find("nvmlSystemGetDriverVersion", functions.driver_version);
  find("nvmlDeviceGetHandleByPciBusId_v2", functions.device_of_pci_bus_id);
  find("nvmlDeviceGetClockInfo", functions.clock);
  find("nvmlDeviceGetMaxClockInfo", functions.most_clock);
  find("nvmlDeviceGetCurrentClocksThrottleReasons", functions.throttle_reasons);
  find("nvmlDeviceGetTemperature", functions.temperature);
  find("nvmlDeviceGetComputeRunningProcesses_v3", functions.processes);
  find("nvmlDeviceGetEnforcedPowerLimit", functions.power_limit);
  find("nvmlDeviceGetPowerManagementDefaultLimit", functions.default_power_limit);
  find("nvmlDeviceGetCurrPcieLinkGeneration", functions.pcie_generation);
  find("nvmlDeviceGetCurrPcieLinkWidth", functions.pcie_width);
  find("nvmlDeviceGetMaxPcieLinkGeneration", functions.most_pcie_generation);
  find("nvmlDeviceGetMaxPcieLinkWidth", functions.most_pcie_width);
  find("nvmlDeviceGetEccMode", functions.ecc_mode);
  find("nvmlDeviceGetPersistenceMode", functions.persistence_mode);
  find("nvmlDeviceGetMigMode", functions.mig_mode);
  find("nvmlDeviceGetNvLinkState", functions.nvlink_state);
  if (functions.initialize == nullptr || functions.device_of_pci_bus_id == nullptr) {
    return std::nullopt;
  }
  return functions;
}

}  // namespace rematch
