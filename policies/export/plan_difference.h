// Compares the effects of two plans for the same trace.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "policies/plan/plan.h"
#include "policies/predict/region/region.h"
#include "policies/trace/trace.h"

namespace rematch {

// Returns for each op of the region whether the plan keeps at least one result of the op. Results
// of views are never kept, even if the plan marks the view as saved.
std::vector<bool> saved_ops(const RegionGraph& graph, const RegionType& type);

struct PlanDifference {
  std::size_t num_ops = 0;  // number of ops that the plans treat differently
  // describes the first difference
  std::string first;
  // true: the plans differ only in whether they recompute the last ops of regions, whose results
  // are not needed
  bool of_early_stop = false;
};

// Returns nullopt if both plans have the same effect. The description calls `plan` "the plan" and
// `other` "the mode". Reports a difference in early stop only if everything else is equal. Throws
// std::invalid_argument if a plan was made for another model.
std::optional<PlanDifference> difference_of(const Trace& trace, const Plan& plan,
                                            const Plan& other);

}  // namespace rematch
