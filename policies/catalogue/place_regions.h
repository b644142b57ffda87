// Places a policy's regions in a trace: which layers it governs and how they become regions.
#pragma once

#include <variant>
#include <vector>

#include "policies/plan/plan.h"
#include "policies/plan/policy.h"
#include "policies/predict/region/region.h"
#include "policies/trace/trace.h"

namespace rematch {

struct PlacedRegion {
  PlannedRegion planned;  // its type is not known yet
  ScopeId first_scope;
  OpRange range;
};

// In forward order, disjoint, none empty. Rejected: N or a layer index outside the model's layers,
// a model without layers, scope patterns that match nothing.
std::variant<std::vector<PlacedRegion>, Rejected> place_regions(const Policy& policy,
                                                                const Trace& trace);

}  // namespace rematch
