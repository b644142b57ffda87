// PyTorch's planners by name, in addition to the catalogue's policies. The planners need times, so
// they also take a profile. pytorch_dp(0.5) and pytorch_ilp(0.5) take a memory budget from 0 to 1.
// sac_ilp(0.8) takes a share of the peak without checkpointing, which the planner estimates.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "policies/base/rejected.h"
#include "policies/catalogue/catalogue.h"
#include "policies/plan/plan.h"
#include "policies/trace/profile.h"
#include "policies/trace/trace.h"

namespace rematch {

// Resolves a user's comma-separated list of planners and catalogue policies. Returns Rejected for
// the first entry that is neither a planner with a budget nor a policy. Collects the policies that
// cannot be applied to this model in `refused`.
std::variant<std::vector<Plan>, Rejected> resolve_baselines(std::string_view list,
                                                            const Trace& trace,
                                                            const Profile& profile,
                                                            std::vector<RefusedPolicy>& refused);

// Returns the plans of each planner at a few budgets, without duplicates. Omits budgets for which
// the planner finds no plan.
std::vector<Plan> planner_baselines(const Trace& trace, const Profile& profile);

}  // namespace rematch
