// Implements rematch search --maximize.
#pragma once

#include <optional>

#include "harness/cli/exit_code.h"
#include "harness/cli/flags/shared_flags.h"
#include "policies/base/bytes.h"
#include "policies/search/region/span_options.h"

namespace rematch {

// Finds the batch size or number of tokens with the most tokens per second within a budget, and the
// plan for it. Without `measured_memory`, uses the memory in the device's data sheet. Throws
// UsageError.
ExitCode maximize(const SearchFlags& flags, const SearchSpace& space,
                  std::optional<Bytes> measured_memory);

}  // namespace rematch
