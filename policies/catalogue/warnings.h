// Makes the warnings of a plan: expectations that the model does not meet, and effects that the
// user may not intend. A warning never rejects the plan.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "policies/plan/plan.h"
#include "policies/plan/policy.h"
#include "policies/predict/region/region.h"
#include "policies/trace/trace.h"

namespace rematch {

// Returns one line per warning. `plan` is the policy resolved against the trace. Throws
// std::invalid_argument if the plan was made for another model.
std::vector<std::string> plan_warnings(const Policy& policy, const Plan& plan, const Trace& trace);

// Returns one line that names the modules that the policy expects but the model lacks, or nullopt
// if none are missing. `ranges` are the ops of the policy's regions.
std::optional<std::string> missing_modules(const Policy& policy, const Trace& trace,
                                           const std::vector<OpRange>& ranges);

}  // namespace rematch
