#include "harness/measure/gpu_monitor.h"

#include <dlfcn.h>
#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <sstream>
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
  find("nvmlDeviceGetHandleByUUID", functions.device_of_uuid);
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
  find("nvmlDeviceGetGpuInstanceId", functions.gpu_instance);
  find("nvmlDeviceGetNvLinkState", functions.nvlink_state);
  if (functions.initialize == nullptr || functions.device_of_pci_bus_id == nullptr) {
    return std::nullopt;
  }
  return functions;
}

namespace {

constexpr std::uint64_t kGpuIdle = 0x1;
constexpr unsigned kMaxNvlinks = 18;
constexpr unsigned kMaxProcesses = 256;

struct ThrottleReason {
  std::uint64_t bit;
  const char* name;
};
constexpr std::array kThrottleReasons = {ThrottleReason{0x2, "applications_clocks_setting"},
                                         ThrottleReason{0x4, "sw_power_cap"},
                                         ThrottleReason{0x8, "hw_slowdown"},
                                         ThrottleReason{0x10, "sync_boost"},
                                         ThrottleReason{0x20, "sw_thermal_slowdown"},
                                         ThrottleReason{0x40, "hw_thermal_slowdown"},
                                         ThrottleReason{0x80, "hw_power_brake_slowdown"},
                                         ThrottleReason{0x100, "display_clock_setting"}};

// Returns the value that an NVML function writes to its last argument. Absent if the driver lacks
// the function or the call fails.
template <class Value, class Function, class... Arguments>
std::optional<Value> ask(Function function, NvmlDevice* device, Arguments... arguments) {
  Value value{};
  if (function == nullptr || function(device, arguments..., &value) != kNvmlSuccess) {
    return std::nullopt;
  }
  return value;
}

// Keeps the lower of two values, if both are known.
void keep_least(std::optional<int>& least, const std::optional<int>& value) {
  if (value && (!least || *value < *least)) least = value;
}

void keep_most(std::optional<int>& most, const std::optional<int>& value) {
  if (value && (!most || *value > *most)) most = value;
}

bool is_idle(const GpuReading& reading) {
  return (reading.throttle_mask.value_or(0) & kGpuIdle) != 0;
}

std::optional<int> median_of(std::vector<int> values) {
  if (values.empty()) return std::nullopt;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Returns the NUMA node that is nearest to the GPU, as the Linux kernel reports it.
std::optional<int> numa_node_of(std::string pci_bus_id) {
  for (char& letter : pci_bus_id) letter = static_cast<char>(std::tolower(letter));
  std::ifstream file("/sys/bus/pci/devices/" + pci_bus_id + "/numa_node");
  int node = 0;
  if (!(file >> node) || node < 0) return std::nullopt;
  return node;
}

}  // namespace

std::unique_ptr<GpuMonitor> GpuMonitor::open(const NvmlFunctions& functions,
                                             const std::string& pci_bus_id,
                                             const std::string& uuid) {
  if (functions.initialize() != kNvmlSuccess) return nullptr;
  NvmlDevice* device = nullptr;
  if (functions.device_of_pci_bus_id(pci_bus_id.c_str(), &device) != kNvmlSuccess) {
    if (functions.shut_down != nullptr) functions.shut_down();
    return nullptr;
  }
  return std::unique_ptr<GpuMonitor>(new GpuMonitor(functions, device, pci_bus_id, uuid));
}

GpuMonitor::GpuMonitor(const NvmlFunctions& functions, NvmlDevice* device, std::string pci_bus_id,
                       const std::string& uuid)
    : functions_(functions), device_(device), pci_bus_id_(std::move(pci_bus_id)) {
  if (!is_in_mig_mode() || functions_.device_of_uuid == nullptr) return;
  NvmlDevice* instance = nullptr;
  if (functions_.device_of_uuid(uuid.c_str(), &instance) != kNvmlSuccess) return;
  gpu_instance_ = ask<unsigned>(functions_.gpu_instance, instance);
  if (gpu_instance_) instance_ = instance;
}

GpuMonitor::~GpuMonitor() {
  if (functions_.shut_down != nullptr) functions_.shut_down();
}

GpuReading GpuMonitor::read(OwnContext own_context) const {
  GpuReading reading;
  reading.sm_clock_mhz = ask<unsigned>(functions_.clock, device_, kNvmlSmClock);
  reading.memory_clock_mhz = ask<unsigned>(functions_.clock, device_, kNvmlMemoryClock);
  reading.temperature_celsius = ask<unsigned>(functions_.temperature, device_, 0);
  reading.throttle_mask = ask<unsigned long long>(functions_.throttle_reasons, device_);
  if (const std::optional<int> processes = num_processes()) {
    const int own = own_context == OwnContext::kYes ? 1 : 0;
    reading.other_processes = std::max(0, *processes - own);
  }
  return reading;
}

void GpuMonitor::describe(Environment& environment) const {
  environment.pci_bus_id = pci_bus_id_;
  environment.pcie_generation = ask<unsigned>(functions_.most_pcie_generation, device_);
  environment.pcie_width = ask<unsigned>(functions_.most_pcie_width, device_);
  environment.pcie_current_generation = ask<unsigned>(functions_.pcie_generation, device_);
  environment.pcie_current_width = ask<unsigned>(functions_.pcie_width, device_);
  environment.power_limit_mw = ask<unsigned>(functions_.power_limit, device_);
  environment.default_power_limit_mw = ask<unsigned>(functions_.default_power_limit, device_);
  environment.sm_clock_most_mhz = ask<unsigned>(functions_.most_clock, device_, kNvmlSmClock);
  const std::optional<int> persistence = ask<int>(functions_.persistence_mode, device_);
  if (persistence) environment.persistence_mode = *persistence != 0;
  // The last argument of ecc_mode and mig_mode receives the mode after a restart. The argument
  // before it receives the current mode.
  int ecc = 0;
  if (ask<int>(functions_.ecc_mode, device_, &ecc)) environment.ecc = ecc != 0;
  unsigned mig = 0;
  if (ask<unsigned>(functions_.mig_mode, device_, &mig)) environment.mig = mig != 0;
  const GpuReading reading = read(OwnContext::kNo);
  environment.sm_clock_mhz = reading.sm_clock_mhz;
  environment.memory_clock_mhz = reading.memory_clock_mhz;
  environment.other_processes = reading.other_processes;
  std::string topology = "nvlinks " + std::to_string(num_nvlinks());
  if (const std::optional<int> node = numa_node_of(pci_bus_id_)) {
    topology += ", numa node " + std::to_string(*node);
  }
  environment.topology = topology;
}

bool GpuMonitor::is_in_mig_mode() const {
  unsigned current = 0;
  return ask<unsigned>(functions_.mig_mode, device_, &current) && current != 0;
}

// Returns one entry for each process that the driver reports. Entries beyond kMaxProcesses are
// empty.
std::optional<std::vector<NvmlProcess>> GpuMonitor::processes_on(NvmlDevice* device) const {
  if (functions_.processes == nullptr) return std::nullopt;
  std::vector<NvmlProcess> processes(kMaxProcesses);
  unsigned count = kMaxProcesses;
  const int result = functions_.processes(device, &count, processes.data());
  if (result != kNvmlSuccess && result != kNvmlInsufficientSize) return std::nullopt;
  processes.resize(count);
  return processes;
}

std::optional<int> GpuMonitor::num_processes() const {
  if (is_in_mig_mode()) return num_processes_of_instance();
  const std::optional<std::vector<NvmlProcess>> processes = processes_on(device_);
  if (!processes) return std::nullopt;
  return static_cast<int>(processes->size());
}

// Counts only processes of this MIG instance, because instances share no multiprocessors, cache or
// bandwidth. The driver lists processes of the whole GPU only to privileged users. Absent if the
// instance is unknown.
std::optional<int> GpuMonitor::num_processes_of_instance() const {
  if (instance_ == nullptr) return std::nullopt;
  std::optional<std::vector<NvmlProcess>> processes = processes_on(device_);
  if (!processes) processes = processes_on(instance_);
  if (!processes) return std::nullopt;
  return static_cast<int>(
      std::ranges::count(*processes, *gpu_instance_, &NvmlProcess::gpu_instance));
}

int GpuMonitor::num_nvlinks() const {
  int active_links = 0;
  for (unsigned link = 0; link < kMaxNvlinks; ++link) {
    if (ask<int>(functions_.nvlink_state, device_, link).value_or(0) != 0) ++active_links;
  }
  return active_links;
}

std::string gpu_uuid(const std::string& name, const std::array<unsigned char, 16>& bytes) {
  std::string text = name.find(" MIG ") == std::string::npos ? "GPU-" : "MIG-";
  for (std::size_t index = 0; index < bytes.size(); ++index) {
    if (index == 4 || index == 6 || index == 8 || index == 10) text += '-';
    std::array<char, 3> digits{};
    std::snprintf(digits.data(), digits.size(), "%02x", static_cast<unsigned>(bytes[index]));
    text += digits.data();
  }
  return text;
}

std::optional<std::string> nvidia_driver_version() {
  if (auto version = driver_version_in("/proc/driver/nvidia/version")) return version;
  const std::optional<NvmlFunctions> functions = load_nvml();
  return functions ? driver_version_of(*functions) : std::nullopt;
}

std::optional<std::string> driver_version_of(const NvmlFunctions& functions) {
  if (functions.driver_version == nullptr || functions.initialize() != kNvmlSuccess) {
    return std::nullopt;
  }
  std::array<char, 96> text{};
  const int result = functions.driver_version(text.data(), static_cast<unsigned>(text.size()));
  if (functions.shut_down != nullptr) functions.shut_down();
  return result == kNvmlSuccess ? std::optional<std::string>(text.data()) : std::nullopt;
}

// Parses a line such as "NVRM version: NVIDIA UNIX x86_64 Kernel Module 535.104.05 Sat Aug 19 ...".
std::optional<std::string> driver_version_in(const std::string& module_file) {
  std::ifstream file(module_file);
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  std::istringstream words(line);
  for (std::string word; words >> word;) {
    const bool number = word.find_first_not_of("0123456789.") == std::string::npos;
    if (number && word.find('.') != std::string::npos) return word;
  }
  return std::nullopt;
}

std::optional<std::string> shared_gpu_warning(const Environment& environment) {
  const int others = environment.other_processes.value_or(0);
  if (others == 0) return std::nullopt;
  return std::to_string(others) +
         (others == 1 ? " other process computes" : " other processes compute") +
         " on the GPU: times will be marked shared_device, and less memory is free; end the other "
         "processes, or choose another GPU with CUDA_VISIBLE_DEVICES";
}

DeviceStateRecord summarize_readings(const std::vector<GpuReading>& readings) {
  DeviceStateRecord state;
  std::vector<int> clocks;
  std::optional<std::uint64_t> mask;
  const bool always_idle = std::all_of(readings.begin(), readings.end(), &is_idle);
  for (const GpuReading& reading : readings) {
    // An idle GPU lowers its clocks, so its clocks are ignored unless the GPU was idle at every
    // reading.
    const bool shows_clocks = always_idle || !is_idle(reading);
    if (shows_clocks && reading.sm_clock_mhz) clocks.push_back(*reading.sm_clock_mhz);
    if (shows_clocks) {
      keep_least(state.sm_clock_least_mhz, reading.sm_clock_mhz);
      keep_least(state.memory_clock_least_mhz, reading.memory_clock_mhz);
    }
    keep_most(state.temperature_most_celsius, reading.temperature_celsius);
    keep_most(state.other_processes, reading.other_processes);
    if (reading.throttle_mask) mask = mask.value_or(0) | *reading.throttle_mask;
  }
  state.sm_clock_median_mhz = median_of(clocks);
  if (mask) state.throttle_reasons = throttle_reason_names(*mask);
  return state;
}

std::vector<std::string> throttle_reason_names(std::uint64_t mask) {
  std::vector<std::string> names;
  std::uint64_t rest = mask & ~kGpuIdle;
  for (const ThrottleReason& reason : kThrottleReasons) {
    if ((rest & reason.bit) != 0) names.emplace_back(reason.name);
    rest &= ~reason.bit;
  }
  for (int bit = 0; bit < 64; ++bit) {
    if ((rest >> bit & 1) != 0) names.push_back("bit_" + std::to_string(bit));
  }
  return names;
}

std::optional<std::string> cupti_version(const char* library) {
  void* handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return std::nullopt;
  const auto get_version =
      reinterpret_cast<int (*)(std::uint32_t*)>(dlsym(handle, "cuptiGetVersion"));
  std::uint32_t version = 0;
  if (get_version == nullptr || get_version(&version) != 0) return std::nullopt;
  // For example 130001 means 13.0, update 1.
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

}  // namespace rematch
