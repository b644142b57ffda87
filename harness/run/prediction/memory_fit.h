// Decides before a point starts whether the point can fit into the available memory. The predicted
// peak is a lower bound of the bytes that the point needs. This code does not depend on any
// command.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/measure/machine_memory.h"
#include "harness/run/variants.h"
#include "policies/base/bytes.h"

namespace rematch {

// Returns the maximum memory that tensors on a device of this machine can use. A run is rejected if
// every point needs more. On the CPU, the limit is the memory available within RAM and control
// groups. On CUDA, it is the card's memory minus the memory of the driver and the context. Absent
// on meta, which allocates nothing, and if the memory is unknown.
std::optional<AvailableMemory> available_memory_of(const std::string& device);

// Returns the memory that tensors usually get. On CUDA, this also excludes the memory that the
// allocator usually loses to gaps: see Note [Memory reserved on a card]. A point that needs more
// seldom fits. Used for profiles, because a profile that runs out of memory has no result.
std::optional<AvailableMemory> usual_memory_of(const std::string& device);

// Returns a text such as "the predicted peak is 112 GiB; available on this machine: 20.9 GiB".
// Empty if the point may fit or the limit is unknown. Pure.
std::string why_too_large(const Variant& variant, const std::optional<AvailableMemory>& limit);

// If no variant fits, returns why even the smallest does not fit. Otherwise returns "". Pure.
std::string why_none_fits(const std::vector<Variant>& variants,
                          const std::optional<AvailableMemory>& limit);

}  // namespace rematch
