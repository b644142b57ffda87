// The state of the source tree that this binary was built from, as git describes it.
#pragma once

#include <optional>
#include <string>

namespace rematch {

// Calls git. Absent if the tree or git is missing.
struct SourceState {
  std::string commit;
  bool dirty = false;
};
std::optional<SourceState> source_state();

// Writes the source state to a record that has fields for it.
template <class Record>
void note_source_state(Record& record) {
  const std::optional<SourceState> source = source_state();
  if (!source) return;
  record.git_commit = source->commit;
  record.git_dirty = source->dirty;
}

// Runs a command with the shell. Returns its output, or the first line of it. Absent if the command
// fails, and if the first line is empty.
std::optional<std::string> output_of(const std::string& command);
std::optional<std::string> first_line_of(const std::string& command);

}  // namespace rematch
