// PyTorch's planners by name, in addition to the catalogue's policies. They need times, so they
// also take a profile. pytorch_dp(0.5) and pytorch_ilp(0.5) take a memory budget from 0 to 1.
// sac_ilp(0.8) takes a share of the peak without checkpointing, which the planner estimates.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "policies/base/rejected.h"
#include "policies/plan/plan.h"
#include "policies/trace/profile.h"
#include "policies/trace/trace.h"

namespace rematch {

// Resolves a user's comma-separated list of planners and catalogue policies. Returns Rejected for
// the first entry that is neither a planner nor a policy, or that cannot be applied to this model.
std::variant<std::vector<Plan>, Rejected> resolve_baselines(std::string_view list,
                                                            const Trace& trace,
                                                            const Profile& profile);

// Returns the plans of each planner at a few budgets, without duplicates. Omits budgets that have
// no plan.
std::vector<Plan> planner_baselines(const Trace& trace, const Profile& profile);

}  // namespace rematch
