// Messages of subcommands in a build without the part that they need.
#pragma once

#include <string>

#include "harness/cli/exit_code.h"

namespace rematch {

[[noreturn]] inline void refuse_without_libtorch(const std::string& command) {
  throw UsageError("rematch " + command +
                   " runs models, and this build has no LibTorch; build preset dev");
}

}  // namespace rematch
