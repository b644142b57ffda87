#include "harness/cli/libtorch/doctor.h"

#include "harness/cli/files/output.h"
#include "harness/engine/interception.h"
#include "harness/measure/environment.h"
#include "harness/measure/gpu_monitor.h"
#include "harness/profile/activity.h"
#include "harness/training/device.h"
#include "policies/base/field_value.h"
#include "policies/base/format.h"
#include "policies/base/json.h"
#include "policies/base/rejected.h"
#include "reports/record/environment.h"

namespace rematch {
namespace {

std::string line(const std::string& name, const std::string& value) {
  constexpr std::size_t kColumn = 14;
  std::string text = name;
  text.append(name.size() < kColumn ? kColumn - name.size() : 1, ' ');
  return text.append(value).append("\n");
}

std::string engine_state() {
  try {
    install_interception();
    return "ok";
  } catch (const std::exception& error) {
    const std::string what = error.what();
    return what.substr(0, what.find('\n'));
  }
}

std::string device_state(const std::string& name) {
  const auto device = usable_device(name);
  const auto* rejected = std::get_if<Rejected>(&device);
  return rejected == nullptr ? "ok" : rejected->message;
}

std::string number(const std::optional<int>& value, const std::string& unit = "") {
  return value ? std::to_string(*value) + unit : "unknown";
}

std::string watts(const std::optional<int>& milliwatts) {
  return milliwatts ? std::to_string(*milliwatts / 1000) + " W" : "unknown";
}

std::string on_or_off(const std::optional<bool>& value) {
  return !value ? "unknown" : *value ? "on" : "off";
}

std::string gpu_lines(const Environment& environment) {
  return line("GPU", environment.device.value_or("unknown") + ", " +
                         format_bytes(environment.device_memory.value_or(Bytes{}))) +
         line("SM clock", number(environment.sm_clock_mhz) + " of " +
                              number(environment.sm_clock_most_mhz, " MHz")) +
         line("power", "limited to " + watts(environment.power_limit_mw) + ", by default to " +
                           watts(environment.default_power_limit_mw)) +
         line("persistence", on_or_off(environment.persistence_mode)) +
         line("PCIe", environment.pci_bus_id.value_or("unknown") + ", generation " +
                          number(environment.pcie_generation) + ", width " +
                          number(environment.pcie_width)) +
         line("topology", environment.topology.value_or("unknown")) +
         line("CUPTI", environment.cupti.value_or("unknown")) +
         line("others", number(environment.other_processes, " other processes on the GPU"));
}

}  // namespace

ExitCode doctor(bool json) {
  const bool has_gpu = device_state("cuda") == "ok";
  const Environment environment = describe_environment(device_named(has_gpu ? "cuda" : "cpu"));
  const std::string engine = engine_state();
  if (json) {
    Json devices = Json::object();
    for (const char* name : {"cpu", "meta", "cuda"}) devices[name] = device_state(name);
    const Json all = {{"schema", "rematch.doctor/1.0"},
                      {"engine", engine},
                      {"devices", std::move(devices)},
                      {"kernel_counting", kernel_counting_state()},
                      {"environment", to_value(environment)}};
    print_json(all);
  } else {
    const std::string unknown = "unknown";
    print(line("rematch", REMATCH_VERSION) +
          line("LibTorch", environment.libtorch_version.value_or(unknown)) +
          line("engine", engine) + line("CPU", environment.cpu_model.value_or(unknown)) +
          line("cores", std::to_string(environment.cpu_cores.value_or(0))) +
          line("threads", std::to_string(environment.threads.value_or(0))) +
          line("capability", environment.cpu_capability.value_or(unknown)) +
          line("math", environment.math_mode.value_or(unknown)) +
          line("memory", format_bytes(environment.host_memory.value_or(Bytes{}))) +
          line("driver", nvidia_driver_version().value_or("none loaded")) +
          line("device cpu", device_state("cpu")) + line("device meta", device_state("meta")) +
          line("device cuda", device_state("cuda")) + (has_gpu ? gpu_lines(environment) : "") +
          line("kernels", kernel_counting_state()));
  }
  return engine == "ok" ? ExitCode::kOk : ExitCode::kToolError;
}

}  // namespace rematch
