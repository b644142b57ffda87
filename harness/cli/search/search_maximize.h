// rematch search --maximize: which batch size, or number of tokens, makes the most tokens a second
// within a budget, and under which plan.
#pragma once

#include <optional>

#include "harness/cli/exit_code.h"
#include "harness/cli/flags/shared_flags.h"
#include "policies/base/bytes.h"
#include "policies/search/region/span_options.h"

namespace rematch {

// `measured_memory`: what doctor found on the device; if none, the device's sheet says. Throws
// UsageError.
ExitCode maximize(const SearchFlags& flags, const SearchSpace& space,
                  std::optional<Bytes> measured_memory);

}  // namespace rematch
