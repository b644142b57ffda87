// Hints after a search: another dtype, other ops.
#pragma once

#include <string>
#include <vector>

#include "harness/cli/flags/search_flags.h"
#include "policies/search/front/front_json.h"

namespace rematch {

// Each claims only what a prediction made here says, or what the flags leave at their default.
std::vector<std::string> search_hints(const SearchFlags& flags, const FrontRecord& record);

}  // namespace rematch
