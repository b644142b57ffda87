// The plans that rematch search shows next to the front: the simple plan, and those for torch.
#pragma once

#include <optional>
#include <vector>

#include "harness/cli/flags/shared_flags.h"
#include "policies/base/bytes.h"
#include "policies/plan/plan.h"
#include "policies/search/front/front.h"
#include "policies/search/front/front_json.h"
#include "policies/search/region/span_options.h"
#include "policies/search/simple/simple_form.h"
#include "policies/trace/profile.h"
#include "policies/trace/trace.h"

namespace rematch {

// Returns the memory that a search may use: the budget, else the device's memory for tensors.
// Absent if --max-slowdown was given or no memory is known.
std::optional<Bytes> limit_of(const FrontRecord& record);

// Finds the best plan of a simple form (simple_form.h), to show next to the front. It is the plan
// with the lowest peak within --max-slowdown, else the fastest plan within limit_of(), else the
// fastest plan within the peak of the knee. If none fits, returns the plan with the lowest peak.
// `exact` is the search that made the record's front. Absent if the search was interrupted.
std::optional<SimplePoint> find_simple(const Trace& trace, const Profile& profile,
                                       const SearchSpace& space, const FrontRecord& record,
                                       FrontSearch& exact);

// Returns whether --for torch asks for plans that torch.utils.checkpoint can run. Throws UsageError
// for an unknown target, and for a schedule that torch does not have.
bool is_for_torch(const SearchFlags& flags);

void keep_to_torch(SearchSpace& space);

// Drops baselines that torch cannot run, because a baseline may be returned as the answer.
std::vector<Plan> runnable_by_torch(const Trace& trace, std::vector<Plan> baselines);

}  // namespace rematch
