// Finds regions that torch.utils.checkpoint cannot recompute, because an op in the region has
// effects that torch does not see.
#pragma once

#include <optional>
#include <string>

#include "policies/plan/plan.h"
#include "policies/predict/region/region.h"
#include "policies/trace/trace.h"

namespace rematch {

// Explains why torch cannot recompute the ops of the range. The text names the first op with a
// hidden effect. Returns nullopt if no op has one.
std::optional<std::string> hidden_op_problem(const Trace& trace, OpRange range);

// Finds the first region of the plan that torch cannot recompute. Returns the region's name and the
// reason, or nullopt if torch can recompute all regions. Throws std::invalid_argument if the plan
// was made for another model.
std::optional<std::string> hidden_op_problem(const Trace& trace, const Plan& plan);

}  // namespace rematch
