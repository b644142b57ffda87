// The plan of a pipeline: one shape for each stage, in order, even if stages have equal traces.
// Their plans may differ. Plans of one stage are plans without other shapes.
#pragma once

#include <cstddef>
#include <vector>

#include "policies/plan/plan.h"

namespace rematch {

// `stages` must not be empty, and each plan must have one shape.
Plan plan_of_stages(const std::vector<Plan>& stages);

// Returns the plan of one stage. Throws std::out_of_range if the plan has no such stage.
Plan plan_of_stage(const Plan& plan, std::size_t stage);

}  // namespace rematch
