// The machine and software that measured a report. Absent means not known on this machine.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "policies/base/bytes.h"

namespace rematch {

struct Environment {
  std::optional<std::string> device;  // "cpu", or the GPU's name
  std::optional<std::string> device_uuid;
  std::optional<std::string> pci_bus_id;  // "0000:17:00.0"
  std::optional<std::string> compute_capability;
  std::optional<Bytes> device_memory;
  std::optional<std::string> cpu_model;
  std::optional<int> cpu_cores;               // this process may use
  std::optional<std::string> cpu_capability;  // what ATen dispatches to: "AVX512"
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
  std::optional<std::string> cuda_driver;  // the newest CUDA that the driver runs
  std::optional<int> multiprocessors;
  std::optional<int> power_limit_mw;  // as enforced
  std::optional<int> default_power_limit_mw;
  std::optional<int> sm_clock_most_mhz;  // that the device can reach
  std::optional<bool> ecc;
  std::optional<bool> mig;
  std::optional<bool> persistence_mode;  // the driver stays loaded between processes
  std::optional<int> pcie_generation;    // that device and slot can reach
  std::optional<int> pcie_width;
  std::optional<int> pcie_current_generation;  // a link at rest is slower
  std::optional<int> pcie_current_width;
  std::optional<std::string> topology;
  std::optional<int> sm_clock_mhz;
  std::optional<int> memory_clock_mhz;
  std::optional<int> other_processes;  // that computed on the device when this run began
  std::optional<std::string> cpu_governor;
  std::optional<std::string> hostname;
  std::map<std::string, std::string> variables;  // allow-listed: "OMP_NUM_THREADS"
  bool operator==(const Environment&) const = default;
};

// SHA-256, in hex, of what must be equal for two reports' times to be compared: everything but
// the host name, what says which card it is or how it is kept, what the device did at the moment,
// the profiler's version, and `variables`.
std::string fingerprint(const Environment& environment);
// Does it cover the member of this JSON name?
bool is_in_fingerprint(std::string_view member);

}  // namespace rematch
