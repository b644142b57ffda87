#include <algorithm>
#include <array>

#include "policies/trace/canonical_json.h"
#include "policies/trace/json.h"
#include "reports/record/field_value.h"
#include "reports/record/parts_json.h"

namespace rematch {
namespace {

constexpr std::array kNotInFingerprint = {"hostname",
                                          "sm_clock_mhz",
                                          "memory_clock_mhz",
                                          "pcie_current_generation",
                                          "pcie_current_width",
                                          "other_processes",
                                          "pci_bus_id",
                                          "persistence_mode",
                                          "default_power_limit_mw",
                                          "cupti",
                                          "variables"};

// Which card of its kind it was. Outside the fingerprint as well, where it stands as not known, so
// that reports without one keep theirs.
constexpr const char* kCard = "device_uuid";

// Members that a report of this version may lack. Where they are not known the fingerprint leaves
// them out, so that such a report's stays what it is.
template <class AnEnvironment, class Visit>
void visit_later_members(AnEnvironment& environment, Visit visit) {
  visit("cuda_driver", environment.cuda_driver);
  visit("multiprocessors", environment.multiprocessors);
  visit("power_limit_mw", environment.power_limit_mw);
  visit("sm_clock_most_mhz", environment.sm_clock_most_mhz);
  visit("ecc", environment.ecc);
  visit("mig", environment.mig);
  visit("pcie_current_generation", environment.pcie_current_generation);
  visit("pcie_current_width", environment.pcie_current_width);
  visit("other_processes", environment.other_processes);
  visit("pci_bus_id", environment.pci_bus_id);
  visit("persistence_mode", environment.persistence_mode);
  visit("default_power_limit_mw", environment.default_power_limit_mw);
  visit("cupti", environment.cupti);
}

// Each member with its key, once for writing and reading.
template <class AnEnvironment, class Visit>
void visit_members(AnEnvironment& environment, Visit visit) {
  visit("device", environment.device);
  visit("device_uuid", environment.device_uuid);
  visit("compute_capability", environment.compute_capability);
  visit("device_memory_bytes", environment.device_memory);
  visit("cpu_model", environment.cpu_model);
  visit("cpu_cores", environment.cpu_cores);
  visit("cpu_capability", environment.cpu_capability);
  visit("threads", environment.threads);
  visit("host_memory_bytes", environment.host_memory);
  visit("libtorch_version", environment.libtorch_version);
  visit("libtorch_build", environment.libtorch_build);
  visit("math_mode", environment.math_mode);
  visit("compiler", environment.compiler);
  visit("build_type", environment.build_type);
  visit("os", environment.os);
  visit("kernel", environment.kernel);
  visit("allocator", environment.allocator);
  visit("driver", environment.driver);
  visit("cuda_runtime", environment.cuda_runtime);
  visit("cudnn", environment.cudnn);
  visit("pcie_generation", environment.pcie_generation);
  visit("pcie_width", environment.pcie_width);
  visit("topology", environment.topology);
  visit("cpu_governor", environment.cpu_governor);
  visit("sm_clock_mhz", environment.sm_clock_mhz);
  visit("memory_clock_mhz", environment.memory_clock_mhz);
  visit("hostname", environment.hostname);
  visit("variables", environment.variables);
}

}  // namespace

Json environment_to_json(const Environment& environment) {
  Json json = Json::object();
  const auto write = [&json](const char* name, const auto& member) {
    json[name] = to_value(member);
  };
  visit_members(environment, write);
  visit_later_members(environment, write);
  return json;
}

Environment environment_from_json(const JsonField& field) {
  Environment environment;
  visit_members(environment,
                [&field](const char* name, auto& member) { read_member(field, name, member); });
  visit_later_members(environment, [&field](const char* name, auto& member) {
    if (const auto found = field.find(name)) read_value(*found, member);
  });
  return environment;
}

std::string fingerprint(const Environment& environment) {
  Json json = environment_to_json(environment);
  for (const char* name : kNotInFingerprint) json.erase(name);
  json[kCard] = nullptr;
  visit_later_members(environment, [&json](const char* name, const auto& member) {
    if (!member) json.erase(name);
  });
  return canonical_sha256(json);
}

bool is_in_fingerprint(std::string_view member) {
  return member != kCard && std::find(kNotInFingerprint.begin(), kNotInFingerprint.end(), member) ==
                                kNotInFingerprint.end();
}

}  // namespace rematch
