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

// Notes it in a record that has a place for it.
template <class Record>
void note_source_state(Record& record) {
  const std::optional<SourceState> source = source_state();
  if (!source) return;
  record.git_commit = source->commit;
  record.git_dirty = source->dirty;
}

// What a command prints, or nothing if it fails; and its first line, or nothing if that is empty.
// `command` goes to the shell.
std::optional<std::string> output_of(const std::string& command);
std::optional<std::string> first_line_of(const std::string& command);

}  // namespace rematch
