// The warnings that come with a plan: expectations of its policy that the model does not meet, and
// effects that its user may not intend. None of them refuses the plan.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "policies/plan/plan.h"
#include "policies/plan/policy.h"
#include "policies/predict/region/region.h"
#include "policies/trace/trace.h"

namespace rematch {

// One line each; `plan` is the policy's, resolved against the trace. Throws std::invalid_argument
// if the plan was made for another model.
std::vector<std::string> plan_warnings(const Policy& policy, const Plan& plan, const Trace& trace);

// One line on the modules that the policy expects and the model lacks; nullopt if it lacks none.
// `ranges` are the ops of the policy's regions.
std::optional<std::string> missing_modules(const Policy& policy, const Trace& trace,
                                           const std::vector<OpRange>& ranges);

}  // namespace rematch
