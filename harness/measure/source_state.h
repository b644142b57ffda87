// The source tree this binary was built from, as git describes it.
#pragma once

#include <optional>
#include <string>

namespace rematch {

// Asked of git when called. Absent if the tree or git is gone.
struct SourceState {
  std::string commit;
  bool dirty = false;
};
std::optional<SourceState> source_state();

// The first line a command prints, or nothing if it fails. `command` goes to the shell.
std::optional<std::string> first_line_of(const std::string& command);

}  // namespace rematch
