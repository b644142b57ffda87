#include "harness/measure/environment.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <sched.h>
#include <sys/utsname.h>
#include <torch/headeronly/version.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string_view>

#include "harness/measure/cuda_device.h"
#include "harness/measure/gpu_monitor.h"

namespace rematch {
namespace {

// Variables that change LibTorch's results or speed. Only these variables and NCCL's variables are
// recorded from the caller's environment.
constexpr std::array kRecordedVariables = {"ATEN_CPU_CAPABILITY",
                                           "CUBLAS_WORKSPACE_CONFIG",
                                           "CUDA_VISIBLE_DEVICES",
                                           "GOMP_CPU_AFFINITY",
                                           "KMP_AFFINITY",
                                           "MKL_CBWR",
                                           "MKL_NUM_THREADS",
                                           "NVIDIA_TF32_OVERRIDE",
                                           "OMP_NUM_THREADS",
                                           "OMP_PROC_BIND",
                                           "ONEDNN_MAX_CPU_ISA",
                                           "PYTORCH_ALLOC_CONF",
                                           "PYTORCH_CUDA_ALLOC_CONF",
                                           "SLURM_JOB_ID"};

constexpr std::string_view kNcclPrefix = "NCCL_";

// Finds the first line of the file `path` that starts with `key`, and returns the text after
// `separator` in that line.
std::optional<std::string> value_in(const char* path, std::string_view key, char separator) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!std::string_view(line).starts_with(key)) continue;
    const std::size_t at = line.find(separator);
    if (at == std::string::npos) continue;
    const std::size_t begin = line.find_first_not_of(" \t\"", at + 1);
    const std::size_t end = line.find_last_not_of(" \t\"");
    if (begin != std::string::npos && end >= begin) return line.substr(begin, end - begin + 1);
  }
  return std::nullopt;
}

std::optional<std::string> first_line_in(const char* path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line) || line.empty()) return std::nullopt;
  return line;
}

std::optional<int> usable_cores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return std::nullopt;
  return CPU_COUNT(&set);
}

std::optional<Bytes> physical_memory() {
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page_bytes = sysconf(_SC_PAGE_SIZE);
  if (pages <= 0 || page_bytes <= 0) return std::nullopt;
  return Bytes{static_cast<std::int64_t>(pages) * page_bytes};
}

std::string one_line(std::string text) {
  std::string line;
  for (const char letter : text) {
    const bool space = letter == '\n' || letter == ' ';
    if (!space) line += letter;
    if (space && !line.empty() && line.back() != ' ') line += ' ';
  }
  while (!line.empty() && line.back() == ' ') line.pop_back();
  return line;
}

std::string math_mode() {
  const auto& context = at::globalContext();
  const char* conditional_reproducibility = std::getenv("MKL_CBWR");
  std::string mode = context.hasMKL() ? "mkl" : "no mkl";
  mode += " cnr ";
  mode += conditional_reproducibility == nullptr ? "off" : conditional_reproducibility;
  mode += context.userEnabledMkldnn() ? ", onednn on" : ", onednn off";
  return mode;
}

std::string compiler() {
#if defined(__clang__)
  return "clang " __clang_version__;
#elif defined(__GNUC__)
  return "gcc " __VERSION__;
#else
  return "unknown";
#endif
}

void describe_host(Environment& environment) {
  environment.cpu_model = value_in("/proc/cpuinfo", "model name", ':');
  environment.cpu_cores = usable_cores();
  environment.host_memory = physical_memory();
  environment.os = value_in("/etc/os-release", "PRETTY_NAME=", '=');
  environment.cpu_governor = first_line_in("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  utsname system{};
  if (uname(&system) == 0) {
    environment.kernel = std::string(system.sysname) + " " + system.release + " " + system.machine;
    environment.hostname = system.nodename;
  }
  for (const char* name : kRecordedVariables) {
    if (const char* value = std::getenv(name)) environment.variables[name] = value;
  }
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (!text.starts_with(kNcclPrefix) || equals == std::string_view::npos) continue;
    environment.variables[std::string(text.substr(0, equals))] = text.substr(equals + 1);
  }
}

void describe_libtorch(Environment& environment) {
  environment.cpu_capability = at::get_cpu_capability();
  environment.threads = at::get_num_threads();
  environment.libtorch_version = TORCH_VERSION;
  environment.libtorch_build = one_line(at::show_config());
  environment.math_mode = math_mode();
}

void describe_gpu(Environment& environment, int index) {
  const std::optional<CudaDevice> device = cuda_device(index);
  if (!device) return;
  environment.device = device->name;
  environment.device_uuid = device->uuid;
  if (!device->pci_bus_id.empty()) environment.pci_bus_id = device->pci_bus_id;
  environment.compute_capability = device->compute_capability;
  environment.device_memory = device->memory;
  environment.multiprocessors = device->multiprocessors;
  environment.cuda_runtime = device->runtime_version;
  environment.cuda_driver = device->driver_version;
  if (!on_dry_device()) environment.driver = nvidia_driver_version();
  if (at::globalContext().hasCuDNN()) {
    environment.cudnn = std::to_string(at::globalContext().versionCuDNN());
  }
  environment.cupti = cupti_version();
  if (const auto monitor = open_gpu_monitor(index)) monitor->describe(environment);
}

}  // namespace

Environment describe_environment(at::Device device) {
  Environment environment;
  environment.device = c10::DeviceTypeName(device.type(), /*lower_case=*/true);
  describe_host(environment);
  describe_libtorch(environment);
  environment.compiler = compiler();
  environment.build_type = REMATCH_BUILD_TYPE;
  environment.allocator = device.is_cuda()   ? "cuda_caching"
                          : device.is_meta() ? "meta_counting"
                                             : "cpu_counting";
  if (device.is_cuda()) describe_gpu(environment, device.index());
  return environment;
}

}  // namespace rematch
