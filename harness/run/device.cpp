#include "harness/run/device.h"

#include <ATen/Context.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "harness/measure/cuda_device.h"
#include "harness/measure/gpu_monitor.h"
#include "kernels/attention/backend.h"
#include "policies/trace/joined.h"
#include "policies/trace/suggest.h"

namespace rematch {
namespace {

const std::vector<std::string_view> kDevices = {"cpu", "meta", "cuda"};
const std::vector<std::string_view> kAllocators = {"caching", "expandable"};
constexpr std::string_view kCachingName = "cuda_caching";
constexpr std::string_view kExpandableName = "cuda_expandable";
constexpr std::string_view kExpandable = "expandable_segments:True";

int num_cuda_devices() {
  return linked_with_cuda() ? static_cast<int>(at::detail::getCUDAHooks().deviceCount()) : 0;
}

}  // namespace

std::variant<std::string, Rejected> usable_device(std::string_view name) {
  if (name == "cpu" || name == "meta") return std::string(name);
  if (name != "cuda") {
    return Rejected{"unknown device '" + std::string(name) + "'" + did_you_mean(name, kDevices)};
  }
  const std::optional<std::string> obstacle =
      cuda_obstacle(linked_with_cuda(), nvidia_driver_version(), num_cuda_devices());
  if (obstacle) return Rejected{"device 'cuda' cannot be used: " + *obstacle};
  return std::string(name);
}

c10::Device device_named(const std::string& name) {
  const c10::Device device(name);
  return device.is_cuda() && !device.has_index() ? c10::Device(device.type(), 0) : device;
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
  return Rejected{"no attention '" + std::string(name) + "' for " + std::string(dtype) + " on " +
                  device + "; allowed are " + joined(known)};
}

std::variant<std::string, Rejected> allocator_of(std::string_view device,
                                                 std::string_view asked_for,
                                                 std::string_view configuration) {
  if (device != "cuda") {
    if (asked_for.empty()) return std::string(device) + "_counting";
    return Rejected{"--allocator is a choice of device cuda; on " + std::string(device) +
                    " leave it out"};
  }
  if (asked_for.empty()) {
    const bool grows = configuration.find(kExpandable) != std::string_view::npos;
    return std::string(grows ? kExpandableName : kCachingName);
  }
  if (asked_for == "caching") return std::string(kCachingName);
  if (asked_for == "expandable") return std::string(kExpandableName);
  return Rejected{"unknown allocator '" + std::string(asked_for) + "'" +
                  did_you_mean(asked_for, kAllocators)};
}

void use_allocator(const std::string& allocator) {
  if (allocator != kExpandableName && allocator != kCachingName) return;
  const char* given = std::getenv(kAllocatorVariable);
  std::string configuration = given == nullptr ? "" : given;
  const std::string setting =
      allocator == kExpandableName ? std::string(kExpandable) : "expandable_segments:False";
  if (configuration.find(setting) != std::string::npos) return;
  // A later setting of the same name wins.
  configuration.append(configuration.empty() ? "" : ",").append(setting);
  setenv(kAllocatorVariable, configuration.c_str(), /*overwrite=*/1);
}

std::optional<std::string> cuda_obstacle(bool built_with_cuda,
                                         const std::optional<std::string>& driver_version,
                                         int device_count) {
  if (!built_with_cuda) {
    return "this build has no CUDA; build preset cuda, or use --device cpu";
  }
  if (device_count > 0) return std::nullopt;  // the runtime knows better than a version
  if (!driver_version) return "no NVIDIA driver is loaded; use --device cpu";
  if (std::atoi(driver_version->c_str()) < kOldestCudaDriver) {
    return "driver " + *driver_version + " is older than CUDA 13 needs (" +
           std::to_string(kOldestCudaDriver) + "); update it, or use --device cpu";
  }
  return "the driver shows no device; is CUDA_VISIBLE_DEVICES empty?";
}

}  // namespace rematch
