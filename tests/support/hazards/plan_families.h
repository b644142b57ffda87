// Plans of every family that policies make, for any trace.
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
  // Empty: the family has nothing to choose in this trace (no such op, no such scope). The resolver
  // is the trace's.
  std::function<std::optional<Plan>(const Trace& trace, const Resolver& resolver)> make;
  // One of the few that stand for all where every form of backward is tried.
  bool for_every_backward = false;
};

const std::vector<PlanFamily>& plan_families();

}  // namespace rematch::testing::hazards
