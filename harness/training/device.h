// The device a user asks for by name, checked: usable here and by this build, or why not.
#pragma once

#include <c10/core/Device.h>

#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "policies/plan/plan.h"

namespace rematch {

// `name` itself if it can be used: "cpu", "meta", "cuda", "cuda:1", "cuda-dry". Rejected: an
// unknown device (with the nearest known), CUDA in a build without it, without a driver, with one
// older than CUDA 13 needs, or without that device.
std::variant<std::string, Rejected> usable_device(std::string_view name);

// Names a CUDA device, the dry one included?
bool names_cuda(std::string_view name);

// The device of a usable name. "cuda" means cuda:0: a device without an index cannot be waited for.
c10::Device device_named(const std::string& name);

// Its name in records: "cpu", "meta", "cuda", and "cuda-dry" wherever kernels do not run.
std::string device_kind(const std::string& name);

// Does it compute, so that losses, bits and times mean something? Not on meta, and not dry.
bool computes_values(const std::string& name);

// The attention kernel to run there, by name; "" stands for the one that is used unless told
// otherwise. Rejected: an unknown name, and a kernel that does not take the dtype there.
std::variant<std::string, Rejected> usable_attention(std::string_view name,
                                                     const std::string& device,
                                                     std::string_view dtype);

// How CUDA's allocator gets its memory from the driver: "caching", fixed segments; "expandable",
// segments that grow. `asked_for` empty: as `configuration`, of LibTorch's variable, says.
// Rejected: another word, or one for another device. The identity's name: "cuda_caching". Pure.
std::variant<std::string, Rejected> allocator_of(std::string_view device,
                                                 std::string_view asked_for,
                                                 std::string_view configuration);

// Makes this process and its children use the allocator of that name.
void use_allocator(const std::string& allocator);

// The allocator variable that LibTorch obeys, with its value: PYTORCH_CUDA_ALLOC_CONF,
// or PYTORCH_ALLOC_CONF if only that one is set.
const char* allocator_variable();
std::string allocator_configuration();

// The first driver that runs CUDA 13.
inline constexpr int kOldestCudaDriver = 580;

// Why CUDA cannot be used, given what is installed. Pure.
std::optional<std::string> cuda_obstacle(bool built_with_cuda,
                                         const std::optional<std::string>& driver_version,
                                         int device_count);

}  // namespace rematch
