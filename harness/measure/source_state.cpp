#include "harness/measure/source_state.h"

#include <array>
#include <cstdio>

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

std::optional<std::string> output_of(const std::string& command) {
  std::FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return std::nullopt;
  std::string text;
  std::array<char, 4096> buffer{};
  while (const std::size_t count = std::fread(buffer.data(), 1, buffer.size(), pipe)) {
    text.append(buffer.data(), count);
  }
  return pclose(pipe) == 0 ? std::optional(text) : std::nullopt;
}

std::optional<std::string> first_line_of(const std::string& command) {
  const std::optional<std::string> text = output_of(command);
  if (!text || text->empty() || text->front() == '\n') return std::nullopt;
  return text->substr(0, text->find('\n'));
}

}  // namespace rematch
