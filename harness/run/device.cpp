#include "harness/run/device.h"

#include <ATen/Context.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <vector>

#include "kernels/attention/backend.h"
#include "policies/trace/suggest.h"

namespace rematch {
namespace {

#ifdef REMATCH_CUDA
constexpr bool kBuiltWithCuda = true;
#else
constexpr bool kBuiltWithCuda = false;
#endif

const std::vector<std::string_view> kDevices = {"cpu", "meta", "cuda"};

int num_cuda_devices() {
  return kBuiltWithCuda ? static_cast<int>(at::detail::getCUDAHooks().deviceCount()) : 0;
}

}  // namespace

std::variant<std::string, Rejected> usable_device(std::string_view name) {
  if (name == "cpu" || name == "meta") return std::string(name);
  if (name != "cuda") {
    return Rejected{"unknown device '" + std::string(name) + "'" + did_you_mean(name, kDevices)};
  }
  const std::optional<std::string> obstacle =
      cuda_obstacle(kBuiltWithCuda, nvidia_driver_version(), num_cuda_devices());
  if (obstacle) return Rejected{"device 'cuda' cannot be used: " + *obstacle};
  return std::string(name);
}

std::variant<std::string, Rejected> usable_attention(std::string_view name,
                                                     const std::string& device,
                                                     std::string_view dtype) {
  std::vector<std::string_view> known;
  for (const AttentionBackend backend : attention_backends(
           at::Device(device).type(), dtype == "bfloat16" ? at::kBFloat16 : at::kFloat)) {
    known.push_back(to_string(backend));
  }
  if (name.empty()) return std::string(known.front());
  if (std::find(known.begin(), known.end(), name) != known.end()) return std::string(name);
  std::string allowed;
  for (const std::string_view other : known) {
    allowed.append(allowed.empty() ? "" : ", ").append(other);
  }
  return Rejected{"no attention '" + std::string(name) + "' for " + std::string(dtype) + " on " +
                  device + "; allowed are " + allowed};
}

// "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 ..."
std::optional<std::string> nvidia_driver_version() {
  std::ifstream file("/proc/driver/nvidia/version");
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  std::istringstream words(line);
  for (std::string word; words >> word;) {
    const bool number = word.find_first_not_of("0123456789.") == std::string::npos;
    if (number && word.find('.') != std::string::npos) return word;
  }
  return std::nullopt;
}

std::optional<std::string> cuda_obstacle(bool built_with_cuda,
                                         const std::optional<std::string>& driver_version,
                                         int device_count) {
  if (!built_with_cuda) {
    return "this build has no CUDA; build preset cuda, or use --device cpu";
  }
  if (!driver_version) return "no NVIDIA driver is loaded; use --device cpu";
  if (std::atoi(driver_version->c_str()) < kOldestCudaDriver) {
    return "driver " + *driver_version + " is older than CUDA 13 needs (" +
           std::to_string(kOldestCudaDriver) + "); update it, or use --device cpu";
  }
  if (device_count == 0) return "the driver shows no device; is CUDA_VISIBLE_DEVICES empty?";
  return std::nullopt;
}

}  // namespace rematch
