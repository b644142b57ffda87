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

// Writes the source state to the record's fields git_commit and git_dirty.
template <class Record>
void note_source_state(Record& record) {
  const std::optional<SourceState> source = source_state();
  if (!source) return;
  record.git_commit = source->commit;
  record.git_dirty = source->dirty;
}

// Both functions run a shell command. The first returns the whole output, the second its first
// line. Absent if the command fails or the first line is empty.
std::optional<std::string> output_of(const std::string& command);
std::optional<std::string> first_line_of(const std::string& command);

}  // namespace rematch
