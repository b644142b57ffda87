// The machine and software that measured a report. A member is absent if the value is not known on
// this machine.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "policies/base/bytes.h"
#include "policies/base/record_fields.h"

namespace rematch {

struct Environment {
  std::optional<std::string> device;  // "cpu", or the GPU's name
  std::optional<std::string> device_uuid;
  std::optional<std::string> pci_bus_id;  // "0000:17:00.0"
  std::optional<std::string> compute_capability;
  std::optional<Bytes> device_memory;
  std::optional<std::string> cpu_model;
  std::optional<int> cpu_cores;               // cores that this process may use
  std::optional<std::string> cpu_capability;  // instruction set that ATen uses, such as "AVX512"
  std::optional<int> threads;
  std::optional<Bytes> host_memory;
  std::optional<std::string> libtorch_version;
  std::optional<std::string> libtorch_build;  // build configuration, one line
  std::optional<std::string> math_mode;       // MKL and oneDNN: "mkl cnr off, onednn on"
  std::optional<std::string> compiler;
  std::optional<std::string> build_type;
  std::optional<std::string> os;
  std::optional<std::string> kernel;
  std::optional<std::string> allocator;
  std::optional<std::string> driver;
  std::optional<std::string> cuda_runtime;
  std::optional<std::string> cudnn;
  std::optional<std::string> cupti;
  std::optional<std::string> cuda_driver;  // newest CUDA version that the driver supports
  std::optional<int> multiprocessors;
  std::optional<int> power_limit_mw;  // the power limit that the driver enforces
  std::optional<int> default_power_limit_mw;
  std::optional<int> sm_clock_most_mhz;  // highest clock that the device supports
  std::optional<bool> ecc;
  std::optional<bool> mig;
  // true if the driver stays initialised when no process uses the device
  std::optional<bool> persistence_mode;
  // highest PCIe generation that the device and the slot support
  std::optional<int> pcie_generation;
  std::optional<int> pcie_width;
  // current PCIe generation, which drops while the link is idle
  std::optional<int> pcie_current_generation;
  std::optional<int> pcie_current_width;
  std::optional<std::string> topology;
  std::optional<int> sm_clock_mhz;
  std::optional<int> memory_clock_mhz;
  // number of other processes that used the device when this run began
  std::optional<int> other_processes;
  std::optional<std::string> cpu_governor;
  std::optional<std::string> hostname;
  // environment variables on an allow list, such as "OMP_NUM_THREADS"
  std::map<std::string, std::string> variables;
  bool operator==(const Environment&) const = default;
};

template <RecordOf<Environment> AnEnvironment, class Visit>
void visit_fields(AnEnvironment& environment, Visit visit) {
  visit("device", environment.device);
  visit({"device_uuid", kNotInFingerprint}, environment.device_uuid);
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
  visit({"sm_clock_mhz", kNotInFingerprint}, environment.sm_clock_mhz);
  visit({"memory_clock_mhz", kNotInFingerprint}, environment.memory_clock_mhz);
  visit({"hostname", kNotInFingerprint}, environment.hostname);
  visit({"variables", kNotInFingerprint}, environment.variables);
  visit({"cuda_driver", kLater}, environment.cuda_driver);
  visit({"multiprocessors", kLater}, environment.multiprocessors);
  visit({"power_limit_mw", kLater}, environment.power_limit_mw);
  visit({"sm_clock_most_mhz", kLater}, environment.sm_clock_most_mhz);
  visit({"ecc", kLater}, environment.ecc);
  visit({"mig", kLater}, environment.mig);
  visit({"pcie_current_generation", kLater | kNotInFingerprint},
        environment.pcie_current_generation);
  visit({"pcie_current_width", kLater | kNotInFingerprint}, environment.pcie_current_width);
  visit({"other_processes", kLater | kNotInFingerprint}, environment.other_processes);
  visit({"pci_bus_id", kLater | kNotInFingerprint}, environment.pci_bus_id);
  visit({"persistence_mode", kLater | kNotInFingerprint}, environment.persistence_mode);
  visit({"default_power_limit_mw", kLater | kNotInFingerprint}, environment.default_power_limit_mw);
  visit({"cupti", kLater | kNotInFingerprint}, environment.cupti);
}

// Returns the SHA-256, in hex, of everything that must be equal before two reports' times may be
// compared.
std::string fingerprint(const Environment& environment);
// True if the fingerprint covers the member with this JSON name.
bool is_in_fingerprint(std::string_view member);

}  // namespace rematch
