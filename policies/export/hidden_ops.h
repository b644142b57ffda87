// Finds the regions of a plan that torch.utils.checkpoint cannot recompute, because their ops hide
// effects from torch.
#pragma once

#include <optional>
#include <string>

#include "policies/plan/plan.h"
#include "policies/predict/region/region.h"
#include "policies/trace/trace.h"

namespace rematch {

// Explains why torch cannot recompute the ops of the range: names the first op with a hidden
// effect. Returns nullopt if no op has a hidden effect.
std::optional<std::string> hidden_op_problem(const Trace& trace, OpRange range);

// Finds the first region of the plan that torch cannot recompute. Returns the region's name and the
// reason, or nullopt if torch can recompute all regions. Throws std::invalid_argument if the plan
// was made for another model.
std::optional<std::string> hidden_op_problem(const Trace& trace, const Plan& plan);

}  // namespace rematch
