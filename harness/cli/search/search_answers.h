// The plans that torch can run, for rematch search --for torch.
#pragma once

#include <vector>

#include "harness/cli/flags/shared_flags.h"
#include "policies/plan/plan.h"
#include "policies/search/region/span_options.h"
#include "policies/trace/trace.h"

namespace rematch {

// Returns whether --for is torch. Throws UsageError if the value of --for is unknown, or if torch
// does not support the value of --schedule.
bool is_for_torch(const SearchFlags& flags);

void keep_to_torch(SearchSpace& space);

// Drops baselines that torch cannot run, because a baseline may be returned as the answer.
std::vector<Plan> runnable_by_torch(const Trace& trace, std::vector<Plan> baselines);

}  // namespace rematch
