// rematch search --maximize: which batch size, or number of tokens, makes the most tokens a second
// within a budget, and under which plan.
#pragma once

#include "harness/cli/exit_code.h"
#include "harness/cli/search_flags.h"
#include "policies/search/stretch_options.h"

namespace rematch {

// Throws UsageError.
ExitCode maximize(const SearchFlags& flags, const SearchSpace& space);

}  // namespace rematch
