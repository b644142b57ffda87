// rematch profile --links: starts ranks that measure collectives and copies.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "harness/cli/exit_code.h"

namespace rematch {

struct LinksSettings {
  std::map<std::string, std::int64_t> layout;
  std::string device;
  int num_steps = 0;
  std::string output;  // empty: stdout
};

// Kilobytes to megabytes of each kind, in seconds. Says in lines on stderr what was measured.
// Throws UsageError for a device or a layout that cannot be measured here; kSomePointsFailed if a
// rank fails, with its name.
ExitCode profile_links(const LinksSettings& settings);

}  // namespace rematch
