// Decides which values a policy moves to a store, such as host memory. A value is moved only if
// this frees its device memory.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "policies/plan/plan.h"
#include "policies/plan/policy.h"
#include "policies/predict/region/trace_index.h"
#include "policies/trace/trace.h"

namespace rematch {

// Returns the store to which the policy moves values. Returns nullopt if the policy moves nothing.
std::optional<Store> store_asked_for(const Policy& policy);

// Keeps a result on the device if something else holds it there anyway. If the policy moves inputs,
// chooses the inputs to move. `types[i]` is the type of the region at `ranges[i]`.
void settle_stores(const Policy& policy, const Trace& trace, const TraceIndex& index,
                   const std::vector<OpRange>& ranges, std::vector<RegionType>& types);

// Returns the bytes of the values that are moved between forward and backward.
Bytes moved_bytes(const Plan& plan, const Trace& trace);

// Explains why the policy moves nothing to the store in this model. Returns a part of a message.
std::string explain_empty_move(const Policy& policy, Store store, const Plan& plan);

}  // namespace rematch
