// The offloading of a policy once the regions of the model are known: a copy is made only if it
// frees device memory.
#pragma once

#include <string>
#include <vector>

#include "policies/plan/plan.h"
#include "policies/plan/policy.h"
#include "policies/predict/region/trace_index.h"
#include "policies/trace/trace.h"

namespace rematch {

bool asks_to_offload(const Policy& policy);

// Saves what would stay on the device anyway, and chooses the inputs that wait on the host if the
// policy wants that. `types[i]` is what the plan says of the region at `ranges[i]`.
void settle_offloads(const Policy& policy, const Trace& trace, const TraceIndex& index,
                     const std::vector<OpRange>& ranges, std::vector<RegionType>& types);

// Bytes that leave the device between forward and backward.
Bytes offloaded_bytes(const Plan& plan, const Trace& trace);

// Why a policy that asks to offload moves nothing of the model; for messages.
std::string why_nothing_is_offloaded(const Policy& policy, const Plan& plan);

}  // namespace rematch
