// What a plan does that its author may not have meant, or what the system whose spelling was typed
// does in silence: said, not refused.
#pragma once

#include <string>
#include <vector>

#include "policies/plan/plan.h"
#include "policies/plan/policy.h"
#include "policies/trace/trace.h"

namespace rematch {

// One line each; `plan` is the policy's, resolved against the trace. Throws std::invalid_argument
// if the plan was made for another model.
std::vector<std::string> plan_warnings(const Policy& policy, const Plan& plan, const Trace& trace);

}  // namespace rematch
