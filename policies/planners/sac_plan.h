// Applies PyTorch 2.11's sac_ilp to a trace, as a baseline. Blocks are the modules that may be
// checkpointed. The inputs of the planner (torch/distributed/_tools/sac_estimator.py,
// mem_tracker.py) are computed from trace and profile.
#pragma once

#include <variant>

#include "policies/base/rejected.h"
#include "policies/plan/plan.h"
#include "policies/planners/line_fit.h"
#include "policies/planners/sac_modules.h"
#include "policies/planners/sac_ops.h"
#include "policies/predict/region/region.h"
#include "policies/trace/profile.h"
#include "policies/trace/trace.h"

namespace rematch {

// `budget_ratio` is a share of the peak that the planner estimates without checkpointing. It must
// be above 0 and at most 1. Returns Rejected for any other ratio, for a model without blocks, or if
// no solution is within the budget.
std::variant<Plan, Rejected> plan_by_sac(const Trace& trace, const Profile& profile,
                                         double budget_ratio);

// Returns the figures that PyTorch's estimator would give for the ops of one module.
SacOps sac_ops_of(const Trace& trace, const Profile& profile, OpRange range);

// Returns two lines that map a share of discarded bytes to a share of recompute time. The ops with
// the most bytes per time are discarded first.
std::vector<FittedLine> sac_tradeoff(const SacOps& ops);

}  // namespace rematch
