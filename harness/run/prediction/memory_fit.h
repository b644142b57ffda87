// Decides before a point starts whether the point can fit into the available memory. The predicted
// peak is a lower bound of the bytes that the point needs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/measure/machine_memory.h"
#include "harness/run/variants.h"
#include "policies/base/bytes.h"

namespace rematch {

// Returns the maximum memory for tensors on a device of this machine. On the CPU, this is the
// available memory, as limited by RAM and control groups. On CUDA, it is the GPU's memory minus the
// memory of the driver and the context. Absent on meta, which allocates nothing, and if the memory
// is unknown.
std::optional<AvailableMemory> available_memory_of(const std::string& device);

// Returns the memory that tensors can usually use. On CUDA, this also excludes the memory that the
// allocator usually loses to fragmentation: see Note [Memory reserved on a card]. Used for
// profiles, because a profile that runs out of memory has no result.
std::optional<AvailableMemory> usual_memory_of(const std::string& device);

// Returns a text such as "the predicted peak is 112 GiB; available on this machine: 20.9 GiB".
// Empty if the point may fit or the limit is unknown. Pure.
std::string why_too_large(const Variant& variant, const std::optional<AvailableMemory>& limit);

// If no variant fits, returns why even the variant with the smallest peak does not fit. Otherwise
// returns "". Pure.
std::string why_none_fits(const std::vector<Variant>& variants,
                          const std::optional<AvailableMemory>& limit);

}  // namespace rematch
