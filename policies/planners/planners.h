// PyTorch's planners by name, beside the catalogue's policies: they need times, so a profile too.
// pytorch_dp(0.5) and pytorch_ilp(0.5) take a memory budget from 0 to 1, sac_ilp(0.8) a share of
// the peak that it estimates without checkpointing.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "policies/plan/plan.h"
#include "policies/trace/profile.h"
#include "policies/trace/trace.h"

namespace rematch {

// The names that a user gives: planners and policies of the catalogue, separated by commas.
// Rejected: the first that is neither, or that this model cannot have.
std::variant<std::vector<Plan>, Rejected> resolve_baselines(std::string_view list,
                                                            const Trace& trace,
                                                            const Profile& profile);

// Each planner at a few budgets, each plan once; budgets without a plan are left out.
std::vector<Plan> planner_baselines(const Trace& trace, const Profile& profile);

}  // namespace rematch
