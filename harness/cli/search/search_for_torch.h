// --for torch: a search of plans that torch.utils.checkpoint can run.
#pragma once

#include <vector>

#include "harness/cli/flags/search_flags.h"
#include "policies/search/front/front.h"

namespace rematch {

// Throws UsageError for another target, and for a schedule that torch does not have.
bool is_for_torch(const SearchFlags& flags);

void keep_to_torch(SearchSpace& space);

// A baseline can be the answer, so those that torch cannot run are none of such a search.
std::vector<Plan> runnable_by_torch(const Trace& trace, std::vector<Plan> baselines);

}  // namespace rematch
