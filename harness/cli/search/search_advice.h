// The advice that rematch search prints: what would fit if no plan fits, and hints below a front.
#pragma once

#include <string>
#include <vector>

#include "harness/cli/flags/shared_flags.h"
#include "policies/base/bytes.h"
#include "policies/search/front/front_json.h"
#include "policies/trace/trace.h"

namespace rematch {

// If no plan fits, suggests in one line what would fit. For example "no plan fits h100's 79.1 GiB,
// the lowest peak is 121 GiB; what fits: --world 2 (65.0 GiB a rank)". The peaks of suggestions are
// predicted with everything recomputed.
std::string no_plan_fits(const SearchFlags& flags, const Trace& trace, const FrontRecord& record,
                         Bytes limit, Bytes lowest);

// Suggests flags that the user left at their defaults, such as --dtype or --ops fused. Predicts the
// figures that the hints show.
std::vector<std::string> search_hints(const SearchFlags& flags, const FrontRecord& record);

}  // namespace rematch
