// Tests the GPU monitor with a made-up driver: a table of functions for one device. The tests set
// the values that these functions return.
#include "harness/measure/gpu_monitor.h"

#include <cstdio>
#include <fstream>
#include <map>

#include "tests/support/catch.h"
#include "tests/support/scratch_folder.h"

namespace rematch {
namespace {

struct Driver {
  int initialize_result = kNvmlSuccess;
  std::string known_device = "00000000:17:00.0";
  std::map<int, unsigned> clocks = {{kNvmlSmClock, 1755}, {kNvmlMemoryClock, 2619}};
  unsigned long long throttle_mask = 0;
  unsigned num_processes = 0;
  int processes_result = kNvmlSuccess;
  int persistence_mode = 1;
  int persistence_result = kNvmlSuccess;
  unsigned active_links = 18;
  bool has_mig_mode = false;
  std::string known_uuid = "MIG-5f7a";
  // If true, the driver lists the processes of the whole GPU. A real driver does so only for
  // privileged users.
  bool lists_whole_gpu = true;
  std::vector<NvmlProcess> mig_processes;  // processes on all MIG instances
  int open_sessions = 0;
};
Driver driver;

int refuse(NvmlDevice*, unsigned*) { return 3; }

constexpr unsigned kOwnInstance = 9;
// The handle of the made-up MIG instance. The handle of the GPU itself is null.
NvmlDevice* const kInstanceHandle = reinterpret_cast<NvmlDevice*>(&driver);

int list_mig_processes(NvmlDevice* device, unsigned* count, NvmlProcess* processes) {
  if (device == nullptr && !driver.lists_whole_gpu) return 4;
  *count = 0;
  for (const NvmlProcess& process : driver.mig_processes) {
    if (device == nullptr || process.gpu_instance == kOwnInstance) processes[(*count)++] = process;
  }
  return kNvmlSuccess;
}

NvmlFunctions functions() {
  NvmlFunctions table;
  table.initialize = [] {
    if (driver.initialize_result == kNvmlSuccess) ++driver.open_sessions;
    return driver.initialize_result;
  };
  table.shut_down = [] {
    --driver.open_sessions;
    return kNvmlSuccess;
  };
  table.driver_version = [](char* text, unsigned size) {
    std::snprintf(text, size, "580.82.07");
    return kNvmlSuccess;
  };
  table.device_of_pci_bus_id = [](const char* id, NvmlDevice**) {
    return id == driver.known_device ? kNvmlSuccess : 6;
  };
  table.clock = [](NvmlDevice*, int clock, unsigned* value) {
    *value = driver.clocks.at(clock);
    return kNvmlSuccess;
  };
  table.most_clock = [](NvmlDevice*, int, unsigned* value) {
    *value = 1980;
    return kNvmlSuccess;
  };
  table.throttle_reasons = [](NvmlDevice*, unsigned long long* mask) {
    *mask = driver.throttle_mask;
    return kNvmlSuccess;
  };
  table.temperature = [](NvmlDevice*, int, unsigned* degrees) {
    *degrees = 61;
    return kNvmlSuccess;
  };
  table.device_of_uuid = [](const char* uuid, NvmlDevice** device) {
    if (uuid != driver.known_uuid) return 6;
    *device = kInstanceHandle;
    return kNvmlSuccess;
  };
  table.mig_mode = [](NvmlDevice*, unsigned* current, unsigned* pending) {
    *current = *pending = driver.has_mig_mode ? 1 : 0;
    return kNvmlSuccess;
  };
  table.gpu_instance = [](NvmlDevice* device, unsigned* id) {
    if (device != kInstanceHandle) return 2;
    *id = kOwnInstance;
    return kNvmlSuccess;
  };
  table.processes = [](NvmlDevice* device, unsigned* count, NvmlProcess* processes) {
    if (driver.has_mig_mode) return list_mig_processes(device, count, processes);
    *count = driver.num_processes;
    return driver.processes_result;
  };
  table.power_limit = [](NvmlDevice*, unsigned* value) {
    *value = 700000;
    return kNvmlSuccess;
  };
  table.default_power_limit = [](NvmlDevice*, unsigned* value) {
    *value = 650000;
    return kNvmlSuccess;
  };
  table.persistence_mode = [](NvmlDevice*, int* mode) {
    *mode = driver.persistence_mode;
    return driver.persistence_result;
  };
  table.most_pcie_generation = [](NvmlDevice*, unsigned* value) {
    *value = 5;
    return kNvmlSuccess;
  };
  table.pcie_generation = &refuse;
  table.nvlink_state = [](NvmlDevice*, unsigned link, int* active) {
    *active = link < driver.active_links ? 1 : 0;
    return kNvmlSuccess;
  };
  return table;
}

std::unique_ptr<GpuMonitor> open_monitor() {
  auto monitor = GpuMonitor::open(functions(), driver.known_device);
  REQUIRE(monitor != nullptr);
  return monitor;
}

TEST_CASE("a driver that does not start or lacks the device gives no monitor") {
  driver = {};
  driver.initialize_result = 9;
  CHECK(GpuMonitor::open(functions(), driver.known_device) == nullptr);
  driver = {};
  CHECK(GpuMonitor::open(functions(), "00000000:99:00.0") == nullptr);
  CHECK(driver.open_sessions == 0);
  { const auto monitor = open_monitor(); }
  CHECK(driver.open_sessions == 0);
}

TEST_CASE(
    "the driver's version is read from the kernel module, or from NVML if a container hides the "
    "module") {
  const testing::ScratchFolder scratch;
  std::ofstream(scratch.file("version")) << "NVRM version: NVIDIA UNIX x86_64 Kernel Module  "
                                            "580.65.06  Sun Jul 27 07:01:03 UTC 2025\n";
  CHECK(driver_version_in(scratch.file("version")) == "580.65.06");
  CHECK(driver_version_in(scratch.file("none")) == std::nullopt);
  driver = {};
  CHECK(driver_version_of(functions()) == "580.82.07");
  CHECK(driver.open_sessions == 0);
  driver.initialize_result = 9;
  CHECK(driver_version_of(functions()) == std::nullopt);
}

TEST_CASE("a missing library gives no monitor") {
  CHECK_FALSE(load_nvml("librematch-no-such-library.so").has_value());
}

TEST_CASE(
    "the environment records the driver's answers, and leaves the fields of refused queries "
    "empty") {
  driver = {};
  Environment environment;
  environment.cpu_model = "Made-up CPU";
  open_monitor()->describe(environment);
  CHECK(environment.cpu_model == "Made-up CPU");
  CHECK(environment.pcie_generation == 5);
  CHECK(environment.pcie_current_generation == std::nullopt);  // missing, because the driver
                                                               // rejects the query
  CHECK(environment.pcie_width == std::nullopt);               // missing, because an old driver
                                                               // lacks the function
  CHECK(environment.ecc == std::nullopt);
  CHECK(environment.power_limit_mw == 700000);
  CHECK(environment.default_power_limit_mw == 650000);
  CHECK(environment.pci_bus_id == driver.known_device);
  CHECK(environment.persistence_mode == true);
  CHECK(environment.sm_clock_mhz == 1755);
  CHECK(environment.sm_clock_most_mhz == 1980);
  CHECK(environment.memory_clock_mhz == 2619);
  CHECK(environment.other_processes == 0);
  CHECK_THAT(environment.topology.value(), Catch::StartsWith("nvlinks 18"));
}

TEST_CASE("persistence mode is reported as on, as off, or as unknown if the driver refuses") {
  driver = {};
  const auto persistence_mode = [] {
    Environment environment;
    open_monitor()->describe(environment);
    return environment.persistence_mode;
  };
  driver.persistence_mode = 0;
  CHECK(persistence_mode() == false);
  driver.persistence_result = 3;
  CHECK(persistence_mode() == std::nullopt);
}

TEST_CASE("every process on the GPU except this one counts as another process") {
  driver = {};
  driver.num_processes = 3;
  const auto monitor = open_monitor();
  CHECK(monitor->read(GpuMonitor::OwnContext::kNo).other_processes == 3);
  CHECK(monitor->read(GpuMonitor::OwnContext::kYes).other_processes == 2);
  driver.num_processes = 0;  // the driver does not list processes of other PID namespaces
  CHECK(monitor->read(GpuMonitor::OwnContext::kYes).other_processes == 0);
  // There are more processes than the monitor's array can hold, but the driver still returns their
  // number.
  driver.num_processes = 300;
  driver.processes_result = kNvmlInsufficientSize;
  CHECK(monitor->read(GpuMonitor::OwnContext::kNo).other_processes == 300);
  driver.processes_result = 3;
  CHECK(monitor->read(GpuMonitor::OwnContext::kNo).other_processes == std::nullopt);
}

TEST_CASE("on a MIG instance, only processes of this instance count") {
  driver = {};
  driver.has_mig_mode = true;
  driver.mig_processes = {{101, 0, kOwnInstance, 0}, {102, 0, 3, 0}, {103, 0, 4, 0}};
  const auto others = [](const std::string& uuid) {
    const auto monitor = GpuMonitor::open(functions(), driver.known_device, uuid);
    return monitor->read(GpuMonitor::OwnContext::kYes).other_processes;
  };
  CHECK(others(driver.known_uuid) == 0);
  driver.mig_processes.push_back(
      {104, 0, kOwnInstance, 1});  // another process on the same MIG instance
  CHECK(others(driver.known_uuid) == 1);
  driver.lists_whole_gpu = false;
  CHECK(others(driver.known_uuid) == 1);
  CHECK(others("GPU-5f7a") == std::nullopt);  // not a MIG instance but a whole GPU
  Environment environment;
  GpuMonitor::open(functions(), driver.known_device, driver.known_uuid)->describe(environment);
  CHECK(environment.mig == true);
  CHECK(environment.other_processes == 2);
}

TEST_CASE("the UUID shows whether a device is a whole GPU or a MIG instance") {
  const std::array<unsigned char, 16> bytes = {0x8d, 0x7f, 0x00, 0x01, 0x02, 0x03, 0x04, 0x05,
                                               0x06, 0x07, 0x08, 0x09, 0x0a, 0x0b, 0x0c, 0xff};
  CHECK(gpu_uuid("NVIDIA H100 80GB HBM3", bytes) == "GPU-8d7f0001-0203-0405-0607-08090a0b0cff");
  CHECK(gpu_uuid("NVIDIA H100 80GB HBM3 MIG 1g.10gb", bytes) ==
        "MIG-8d7f0001-0203-0405-0607-08090a0b0cff");
}

TEST_CASE("measuring on a shared GPU gives a warning") {
  Environment environment;
  CHECK_FALSE(shared_gpu_warning(environment).has_value());
  environment.other_processes = 0;
  CHECK_FALSE(shared_gpu_warning(environment).has_value());
  environment.other_processes = 2;
  CHECK_THAT(
      shared_gpu_warning(environment).value(),
      Catch::Contains("2 other processes compute") && Catch::Contains("CUDA_VISIBLE_DEVICES"));
}

TEST_CASE(
    "throttle reasons have names, idling is not a throttle reason, and an unknown bit is kept") {
  CHECK(throttle_reason_names(0x1).empty());
  CHECK(throttle_reason_names(0x1 | 0x4 | 0x40) ==
        std::vector<std::string>{"sw_power_cap", "hw_thermal_slowdown"});
  CHECK(throttle_reason_names(1ull << 40) == std::vector<std::string>{"bit_40"});
}

TEST_CASE("readings are summarized by the worst value") {
  std::vector<GpuReading> readings(3);
  readings[0] = {1755, 2619, 50, 0x4, 0};
  readings[1] = {1980, 2619, 66, 0x40, 2};
  readings[2] = {1410, std::nullopt, 60, 0, std::nullopt};
  const DeviceStateRecord state = summarize_readings(readings);
  CHECK(state.sm_clock_median_mhz == 1755);
  CHECK(state.sm_clock_least_mhz == 1410);
  CHECK(state.memory_clock_least_mhz == 2619);
  CHECK(state.temperature_most_celsius == 66);
  CHECK(state.other_processes == 2);
  CHECK(state.throttle_reasons == std::vector<std::string>{"sw_power_cap", "hw_thermal_slowdown"});
  CHECK((summarize_readings({}) == DeviceStateRecord{}));
}

TEST_CASE("clock rates that were read while the GPU was idle are ignored") {
  const GpuReading idle{345, 1593, 40, 0x1, 0};
  const GpuReading busy{1755, 2619, 50, 0x0, 0};
  const DeviceStateRecord state = summarize_readings({idle, busy});
  CHECK(state.sm_clock_least_mhz == 1755);
  CHECK(state.sm_clock_median_mhz == 1755);
  CHECK(state.memory_clock_least_mhz == 2619);
  CHECK(summarize_readings({idle}).sm_clock_least_mhz == 345);
}

}  // namespace
}  // namespace rematch
