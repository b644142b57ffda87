// The plans that torch can run, for rematch search --for torch.
#pragma once

#include <vector>

#include "harness/cli/flags/shared_flags.h"
#include "policies/plan/plan.h"
#include "policies/search/region/span_options.h"
#include "policies/trace/trace.h"

namespace rematch {

// Returns whether --for torch was given, which asks for plans that torch.utils.checkpoint can run.
// Throws UsageError for an unknown target of --for, and for a --schedule that torch does not have.
bool is_for_torch(const SearchFlags& flags);

void keep_to_torch(SearchSpace& space);

// Drops baselines that torch cannot run, because a baseline may be returned as the answer.
std::vector<Plan> runnable_by_torch(const Trace& trace, std::vector<Plan> baselines);

}  // namespace rematch
