// Decides a policy's offloads once the regions of the model are known. A copy is made only if it
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

// Changes an offload to a save if the result stays on the device anyway. If the policy offloads
// inputs, also chooses which inputs. `types[i]` is the type of the region at `ranges[i]`.
void settle_offloads(const Policy& policy, const Trace& trace, const TraceIndex& index,
                     const std::vector<OpRange>& ranges, std::vector<RegionType>& types);

// Returns the bytes that leave the device between forward and backward.
Bytes offloaded_bytes(const Plan& plan, const Trace& trace);

// Explains, for messages, why a policy that asks to offload moves nothing in this model.
std::string explain_empty_offload(const Policy& policy, const Plan& plan);

}  // namespace rematch
