// What follows the front: its simple form, the file for PyTorch, and what to try next.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/cli/flags/shared_flags.h"
#include "policies/search/front/front.h"
#include "policies/search/front/front_json.h"

namespace rematch {

// The plan of a search that every trainer can express, beside its front.

// The memory that a search may use: the budget, else the device's memory. Nothing where a slowdown
// was asked about, and where no memory is known.
std::optional<Bytes> limit_of(const FrontRecord& record);

// For what the record asks, or where it asks nothing for the peak of the knee. The record's front
// is that of `exact`. An interrupted search has none.
std::optional<SimplePoint> find_simple(const Trace& trace, const Profile& profile,
                                       const SearchSpace& space, const FrontRecord& record,
                                       FrontSearch& exact);

// --for torch: a search of plans that torch.utils.checkpoint can run.

// Throws UsageError for another target, and for a schedule that torch does not have.
bool is_for_torch(const SearchFlags& flags);

void keep_to_torch(SearchSpace& space);

// A baseline can be the answer, so those that torch cannot run are none of such a search.
std::vector<Plan> runnable_by_torch(const Trace& trace, std::vector<Plan> baselines);

// Hints after a search: another dtype, other ops.

// Each claims only what a prediction made here says, or what the flags leave at their default.
std::vector<std::string> search_hints(const SearchFlags& flags, const FrontRecord& record);

}  // namespace rematch
