// Checks whether this machine and this build can use the device that a user names.
#pragma once

#include <c10/core/Device.h>

#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "policies/base/rejected.h"

namespace rematch {

// Returns `name` if the device can be used. Names are "cpu", "meta", "cuda", "cuda:1" and
// "cuda-dry". Rejects an unknown device, and suggests the nearest known name. Rejects CUDA in four
// cases: a build without CUDA, no driver, a driver older than CUDA 13 needs, or no such device.
std::variant<std::string, Rejected> usable_device(std::string_view name);

// Returns whether `name` is a CUDA device, including the dry one.
bool names_cuda(std::string_view name);

// Returns the device of a usable name. "cuda" means cuda:0, because a device without an index
// cannot be synchronized.
c10::Device device_named(const std::string& name);

// Returns the device's name for result files: "cpu", "meta" or "cuda", or "cuda-dry" if kernels do
// not run.
std::string device_kind(const std::string& name);

// Returns whether the device computes values. Meta and the dry device do not compute values, so
// their losses, bits and times mean nothing.
bool computes_values(const std::string& name);

// Returns the name of the attention kernel to run on the device. An empty name selects the default.
// Rejects an unknown name, and a kernel that does not support the dtype on this device.
std::variant<std::string, Rejected> usable_attention(std::string_view name,
                                                     const std::string& device,
                                                     std::string_view dtype);

// Lets LibTorch choose the attention kernel. On the dry device, LibTorch must not choose cuDNN's
// kernel, because there is no cuDNN.
void use_attention_of_libtorch();

// Returns the allocator's name for result files, such as "cuda_caching". `asked_for` is "caching"
// (segments of fixed size), "expandable" (segments that grow) or empty. If `asked_for` is empty,
// uses `configuration`, the value of LibTorch's environment variable. Rejects other words, and any
// word for a device other than CUDA. Pure.
std::variant<std::string, Rejected> allocator_of(std::string_view device,
                                                 std::string_view asked_for,
                                                 std::string_view configuration);

// Makes this process and its children use the named allocator.
void use_allocator(const std::string& allocator);

// Return the name and the value of the environment variable that configures LibTorch's allocator:
// PYTORCH_CUDA_ALLOC_CONF, or PYTORCH_ALLOC_CONF if only the latter is set.
const char* allocator_variable();
std::string allocator_configuration();

// The oldest NVIDIA driver that runs CUDA 13.
inline constexpr int kOldestCudaDriver = 580;

// Returns why CUDA cannot be used; nothing if it can. Pure.
std::optional<std::string> cuda_obstacle(bool built_with_cuda,
                                         const std::optional<std::string>& driver_version,
                                         int device_count);

}  // namespace rematch
