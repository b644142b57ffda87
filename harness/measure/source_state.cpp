#include "harness/measure/source_state.h"

#include <cstdio>
#include <memory>

namespace rematch {
namespace {

std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char letter : text) {
    if (letter == '\'') {
      result += "'\\''";
    } else {
      result += letter;
    }
  }
  return result + "'";
}

}  // namespace

std::optional<SourceState> source_state() {
  const std::string git = "git -C " + quoted(REMATCH_SOURCE_TREE) + " ";
  const std::optional<std::string> commit = first_line_of(git + "rev-parse HEAD 2>/dev/null");
  if (!commit) return std::nullopt;
  const std::optional<std::string> change =
      first_line_of(git + "status --porcelain --untracked-files=no 2>/dev/null");
  return SourceState{*commit, change.has_value()};
}

std::optional<std::string> first_line_of(const std::string& command) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(popen(command.c_str(), "r"), &pclose);
  if (pipe == nullptr) return std::nullopt;
  std::string line;
  for (int letter = std::fgetc(pipe.get()); letter != EOF && letter != '\n';
       letter = std::fgetc(pipe.get())) {
    line += static_cast<char>(letter);
  }
  while (std::fgetc(pipe.get()) != EOF) {
  }
  if (line.empty()) return std::nullopt;
  return line;
}

}  // namespace rematch
