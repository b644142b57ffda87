// Describes this machine, this LibTorch and this build for a report.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>

#include "reports/record/environment.h"

namespace rematch {

// What is not known on this machine stays absent. `device` is what the points run on.
Environment describe_environment(at::Device device);

// The state of the source tree this binary was built from, asked of git when called. Absent where
// the tree or git is not there any more.
struct SourceState {
  std::string commit;
  bool dirty = false;
};
std::optional<SourceState> source_state();

// The first line a command prints, or nothing if it fails. `command` goes to the shell.
std::optional<std::string> first_line_of(const std::string& command);

}  // namespace rematch
