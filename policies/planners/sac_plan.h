// PyTorch 2.11's sac_ilp over a trace, as a baseline: blocks are the modules that may be
// checkpointed; what it knows of them (torch/distributed/_tools/sac_estimator.py, mem_tracker.py)
// is made from trace and profile.
#pragma once

#include <variant>

#include "policies/plan/plan.h"
#include "policies/planners/line_fit.h"
#include "policies/planners/sac_modules.h"
#include "policies/planners/sac_ops.h"
#include "policies/predict/region/region.h"
#include "policies/trace/profile.h"
#include "policies/trace/trace.h"

namespace rematch {

// `budget_ratio`: of the peak that it estimates without checkpointing; above 0, at most 1.
// Rejected: no such ratio, no blocks, or no solution within the budget.
std::variant<Plan, Rejected> plan_by_sac(const Trace& trace, const Profile& profile,
                                         double budget_ratio);

// The estimator's figures for the ops of one module.
SacOps sac_ops_of(const Trace& trace, const Profile& profile, OpRange range);

// Share of recompute time over share of discarded bytes, ops taken by bytes for their time: the two
// lines that the planner weighs a module by.
std::vector<FittedLine> sac_tradeoff(const SacOps& ops);

}  // namespace rematch
