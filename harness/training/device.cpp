#include "harness/training/device.h"

#include <ATen/Context.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "harness/measure/cuda_device.h"
#include "harness/measure/gpu_monitor.h"
#include "kernels/attention/backend.h"
#include "policies/base/text.h"

namespace rematch {
namespace {

const std::vector<std::string_view> kDevices = {"cpu", "meta", "cuda", "cuda-dry"};
constexpr std::string_view kCuda = "cuda";
constexpr std::string_view kDry = "cuda-dry";
const std::vector<std::string_view> kAllocators = {"caching", "expandable"};
constexpr std::string_view kCachingName = "cuda_caching";
constexpr std::string_view kExpandableName = "cuda_expandable";
constexpr std::string_view kExpandable = "expandable_segments:True";
constexpr const char* kOldAllocatorVariable = "PYTORCH_CUDA_ALLOC_CONF";
constexpr const char* kNewAllocatorVariable = "PYTORCH_ALLOC_CONF";

int num_cuda_devices() {
  return linked_with_cuda() ? static_cast<int>(at::detail::getCUDAHooks().deviceCount()) : 0;
}

// Returns N for "cuda:N", and 0 for a name without an index. Returns nothing for other names.
std::optional<int> cuda_index(std::string_view name) {
  if (name == kCuda || name == kDry) return 0;
  if (!name.starts_with(kCuda) || name.size() < kCuda.size() + 2 || name[kCuda.size()] != ':') {
    return std::nullopt;
  }
  const auto index = parse_number<int>(name.substr(kCuda.size() + 1));
  return index && *index >= 0 ? index : std::nullopt;
}

Rejected cannot_use(std::string_view name, const std::string& reason) {
  return Rejected{"device '" + std::string(name) + "' cannot be used: " + reason};
}

}  // namespace

std::variant<std::string, Rejected> usable_device(std::string_view name) {
  if (name == "cpu" || name == "meta") return std::string(name);
  const std::optional<int> index = cuda_index(name);
  if (!index) {
    const std::string advice =
        name == "gpu" ? "; did you mean 'cuda'?" : did_you_mean(name, kDevices);
    return Rejected{"unknown device '" + std::string(name) + "'" + advice};
  }
  const int num_devices = num_cuda_devices();
  if (name == kDry && !on_dry_device()) return cannot_use(name, "this program is not linked to it");
  const std::optional<std::string> obstacle =
      cuda_obstacle(linked_with_cuda(), nvidia_driver_version(), num_devices);
  if (obstacle) return cannot_use(name, *obstacle);
  if (*index >= num_devices) {
    return cannot_use(name,
                      "the devices here are cuda:0 to cuda:" + std::to_string(num_devices - 1));
  }
  return std::string(name);
}

bool names_cuda(std::string_view name) { return cuda_index(name).has_value(); }

c10::Device device_named(const std::string& name) {
  const std::optional<int> index = cuda_index(name);
  if (!index) return c10::Device(name);
  return c10::Device(c10::DeviceType::CUDA, static_cast<c10::DeviceIndex>(*index));
}

std::string device_kind(const std::string& name) {
  if (!names_cuda(name)) return name;
  return std::string(on_dry_device() ? kDry : kCuda);
}

bool computes_values(const std::string& name) {
  return name != "meta" && device_kind(name) != kDry;
}

std::variant<std::string, Rejected> usable_attention(std::string_view name,
                                                     const std::string& device,
                                                     std::string_view dtype) {
  std::vector<std::string_view> known;
  for (const AttentionBackend backend : attention_backends(
           device_named(device).type(), dtype == "bfloat16" ? at::kBFloat16 : at::kFloat)) {
    known.push_back(to_string(backend));
  }
  if (name.empty()) return std::string(known.front());
  if (std::find(known.begin(), known.end(), name) != known.end()) return std::string(name);
  return Rejected{"unknown attention backend '" + std::string(name) + "' for " +
                  std::string(dtype) + " on " + device + "; allowed: " + joined(known)};
}

void use_attention_of_libtorch() { let_libtorch_choose_attention(/*has_cudnn=*/!on_dry_device()); }

std::variant<std::string, Rejected> allocator_of(std::string_view device,
                                                 std::string_view asked_for,
                                                 std::string_view configuration) {
  if (!names_cuda(device)) {
    if (asked_for.empty()) return std::string(device) + "_counting";
    return Rejected{"--allocator requires device cuda; leave it out with device " +
                    std::string(device)};
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
  std::string configuration = allocator_configuration();
  const std::string setting =
      allocator == kExpandableName ? std::string(kExpandable) : "expandable_segments:False";
  if (configuration.find(setting) != std::string::npos) return;
  // LibTorch uses the last value of a repeated setting.
  configuration.append(configuration.empty() ? "" : ",").append(setting);
  setenv(allocator_variable(), configuration.c_str(), /*overwrite=*/1);
}

const char* allocator_variable() {
  const bool has_old = std::getenv(kOldAllocatorVariable) != nullptr;
  const bool has_new = std::getenv(kNewAllocatorVariable) != nullptr;
  return has_new && !has_old ? kNewAllocatorVariable : kOldAllocatorVariable;
}

std::string allocator_configuration() {
  const char* given = std::getenv(allocator_variable());
  return given == nullptr ? "" : given;
}

std::optional<std::string> cuda_obstacle(bool built_with_cuda,
                                         const std::optional<std::string>& driver_version,
                                         int device_count) {
  if (!built_with_cuda) {
    return "this build has no CUDA; build preset cuda, or use --device cpu";
  }
  if (device_count > 0)
    return std::nullopt;  // if the runtime finds a device, the driver is new enough
  if (!driver_version) return "no NVIDIA driver is loaded; use --device cpu";
  if (std::atoi(driver_version->c_str()) < kOldestCudaDriver) {
    return "driver " + *driver_version + " is older than CUDA 13 needs (" +
           std::to_string(kOldestCudaDriver) + "); update it, or use --device cpu";
  }
  return "the driver shows no device; is CUDA_VISIBLE_DEVICES empty?";
}

}  // namespace rematch
