// Finds the parts of a plan that torch.utils.checkpoint cannot repeat, because they hide effects
// from torch.
#pragma once

#include <optional>
#include <string>

#include "policies/plan/plan.h"
#include "policies/predict/region/region.h"
#include "policies/trace/trace.h"

namespace rematch {

// Returns why torch cannot recompute the ops of the range: an op in it has a hidden effect. Returns
// nullopt if no op has one.
std::optional<std::string> hidden_op_problem(const Trace& trace, OpRange range);

// Returns the reason for the first region of the plan that torch cannot recompute, with the
// region's name. Throws std::invalid_argument if the plan was made for another model.
std::optional<std::string> hidden_op_problem(const Trace& trace, const Plan& plan);

}  // namespace rematch
