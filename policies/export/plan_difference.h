// How two plans for one trace differ in what they run.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "policies/plan/plan.h"
#include "policies/predict/region/region.h"
#include "policies/trace/trace.h"

namespace rematch {

// By op of the region, whether a result that the plan saves is kept: it may name an op of which
// nothing can be, a view.
std::vector<bool> saved_ops(const RegionGraph& graph, const RegionType& type);

struct PlanDifference {
  std::size_t num_ops = 0;  // that differ
  // The first of them: "layer model.layers.1 is checkpointed in the plan, not by it".
  std::string first;
  bool of_early_stop = false;  // alone: one of them re-runs regions to their end
};

// Nothing if they do the same. `other` is what the words call `by it`. Early stop counts only where
// all else is equal. Throws std::invalid_argument if one was made for another model.
std::optional<PlanDifference> difference_of(const Trace& trace, const Plan& plan,
                                            const Plan& other);

}  // namespace rematch
