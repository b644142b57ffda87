// Decides before a point starts whether it can fit into the available memory. The predicted peak is
// a lower bound of what the point needs. Knows no command.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/measure/machine_memory.h"
#include "harness/run/variants.h"
#include "policies/base/bytes.h"
#include "policies/predict/step/optimizer_bytes.h"
#include "policies/trace/trace.h"

namespace rematch {

// Returns the memory that tensors on a device of this machine can use at most. A run is rejected if
// every point needs more. On the CPU this is what RAM and control groups leave; on CUDA, what the
// driver and the context leave of the card. Absent on meta, which allocates nothing, and if the
// memory is unknown.
std::optional<AvailableMemory> available_memory_of(const std::string& device);

// Returns the memory that tensors usually get. On CUDA it also excludes what gaps of the allocator
// usually take: see Note [What is reserved of a card]. A larger point seldom fits. Used for
// profiles, where running out of memory is not a result.
std::optional<AvailableMemory> usual_memory_of(const std::string& device);

// "the predicted peak is 112 GiB; available on this machine: 20.9 GiB". Empty if the point may fit
// or the limit is unknown. Pure.
std::string why_too_large(const Variant& variant, const std::optional<AvailableMemory>& limit);

// Returns the reason for the smallest variant if every variant is too large, else "". Pure.
std::string why_none_fits(const std::vector<Variant>& variants,
                          const std::optional<AvailableMemory>& limit);

// Replaces the memory figures of the step on meta with the step simulator's figures for
// `optimizer`. Used for optimizers that this program cannot run, even on meta. `trace` is the trace
// of the variants' model.
void predict_memory_with(OptimizerModel optimizer, const Trace& trace,
                         std::vector<Variant>& variants);

}  // namespace rematch
