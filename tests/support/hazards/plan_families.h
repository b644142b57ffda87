// The kinds of plans that policies make ("families"). Each makes one plan for a given trace.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "policies/catalogue/resolve.h"
#include "policies/plan/plan.h"
#include "policies/trace/trace.h"

namespace rematch::testing::hazards {

struct PlanFamily {
  std::string name;
  // Returns nullopt if the family cannot make a plan for this trace, for example because the trace
  // lacks an op or a scope. `resolver` must belong to `trace`.
  std::function<std::optional<Plan>(const Trace& trace, const Resolver& resolver)> make;
  // Whether tests combine this family with every value of Backward.
  bool for_every_backward = false;
};

const std::vector<PlanFamily>& plan_families();

}  // namespace rematch::testing::hazards
