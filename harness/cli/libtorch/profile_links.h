// Implements rematch profile --links. In a build without LibTorch, without_libtorch.cpp implements
// it instead.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "harness/cli/exit_code.h"
#include "harness/cli/files/output_file.h"

namespace rematch {

// Starts ranks that measure collectives and copies. Prints a summary to stderr. If `output` is
// empty, writes to stdout. Throws UsageError for a device or layout that cannot be measured here.
// If a rank fails, names the rank and returns kSomePointsFailed.
ExitCode profile_links(const std::map<std::string, std::int64_t>& layout, const std::string& device,
                       int num_steps, const OutputRequest& output);

}  // namespace rematch
