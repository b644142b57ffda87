// Whether a point can fit into the memory that there is, before it is begun: its predicted peak is
// a lower bound of what it needs. Knows no command.
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

// The memory of a device of this machine: on the CPU what RAM and control groups leave, on CUDA
// what driver and context leave of the card. Absent on meta, which holds nothing, and where it is
// not known. More than that never fits, so a run without a point below it is refused.
std::optional<AvailableMemory> available_memory_of(const std::string& device);

// The same, and on CUDA less what the allocator's gaps usually take: see Note [What is reserved of
// a card]. More than that seldom fits. For a profile, where running out of memory is no result.
std::optional<AvailableMemory> usual_memory_of(const std::string& device);

// "the predicted peak is 112 GiB; available on this machine: 20.9 GiB"; empty: it may fit, or
// the limit is not known. Pure.
std::string why_too_large(const Variant& variant, const std::optional<AvailableMemory>& limit);

// The same for the smallest of the variants if each of them is too large; else empty. Pure.
std::string why_none_fits(const std::vector<Variant>& variants,
                          const std::optional<AvailableMemory>& limit);

// Predicted memory of a step with an optimizer that does not run here, on meta or anywhere else.

// Puts the step simulator's figures with this optimizer in place of those of the step on meta.
// `trace` is that of the variants' model.
void predict_memory_with(OptimizerModel optimizer, const Trace& trace,
                         std::vector<Variant>& variants);

}  // namespace rematch
