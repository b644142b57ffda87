#include "harness/cli/files/output.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <set>

#include "harness/cli/exit_code.h"
#include "policies/base/file.h"
#include "policies/base/format.h"
#include "policies/base/json.h"

namespace rematch {

void write_output(const std::string& file, const Json& json) {
  write_output(file, json.dump(2) + "\n");
}

void write_output(const std::string& file, const std::string& text) {
  if (file.empty()) {
    print(text);
  } else {
    write_file_atomically(file, text);
  }
}

void print_json(const Json& json) { print(json.dump(2) + "\n"); }

void show(const std::string& file, bool as_json, const std::function<Json()>& record,
          const std::function<std::string()>& table) {
  if (!file.empty() || as_json) {
    const Json json = record();
    if (!file.empty()) write_json_file(file, json);
    if (as_json) return print_json(json);
  }
  print(table());
}

// File systems allow names of up to 255 bytes. The temporary file beside the output has a longer
// name than the output, so this limit is lower.
constexpr std::size_t kMaxNameBytes = 200;

void require_writable(const std::string& file) {
  namespace fs = std::filesystem;
  if (file.empty()) return;
  const std::size_t num_bytes = fs::path(file).filename().string().size();
  if (num_bytes > kMaxNameBytes) {
    throw UsageError("cannot write a file whose name has " + std::to_string(num_bytes) +
                     " bytes; the limit is " + std::to_string(kMaxNameBytes));
  }
  std::error_code ignored;
  const fs::path parent = fs::path(file).parent_path();
  const std::string folder = parent.empty() ? "." : parent.string();
  if (!fs::is_directory(folder, ignored)) {
    throw UsageError("cannot write '" + file + "': there is no folder '" + folder +
                     "'; make it first");
  }
  if (fs::is_directory(file, ignored)) {
    throw UsageError("cannot write '" + file +
                     "': it is a folder; give the name of a file in this folder");
  }
  if (access(folder.c_str(), W_OK | X_OK) != 0) {
    throw UsageError("cannot write '" + file + "': " + std::strerror(errno) +
                     "; choose a folder that you may write to");
  }
}

void print(const std::string& text) {
  const std::size_t written = std::fwrite(text.data(), 1, text.size(), stdout);
  // stdout is flushed so that later lines on stderr appear below this text.
  if (written == text.size() && std::fflush(stdout) == 0) return;
  throw FileError("cannot write to stdout: " + std::string(std::strerror(errno)));
}

std::size_t terminal_columns() {
  constexpr std::size_t kWithoutTerminal = 120;
  constexpr int kMinColumns = 40;
  winsize size{};
  const bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  if (known) return size.ws_col;
  const char* said = std::getenv("COLUMNS");
  const int columns = said == nullptr ? 0 : std::atoi(said);
  return columns >= kMinColumns ? static_cast<std::size_t>(columns) : kWithoutTerminal;
}

std::string indented(const std::string& text, std::size_t indent) {
  constexpr std::size_t kMinText = 30;  // minimum width of the text, even in a narrower terminal
  std::string lines;
  for (const std::string& line :
       wrap(text, std::max(terminal_columns(), indent + kMinText) - indent)) {
    lines.append(indent, ' ').append(line).append("\n");
  }
  return lines;
}

std::string one_line(std::string text) {
  for (char& letter : text) {
    if (letter == '\n') letter = ' ';
  }
  return text;
}

void say(const std::string& line) { std::fprintf(stderr, "rematch: %s\n", one_line(line).c_str()); }

ExitCode end_with(ExitCode code, const std::string& line) {
  say(line);
  return code;
}

void say_missing(const std::vector<std::string>& missing, std::size_t total,
                 const std::string& what, const std::string& advice) {
  constexpr std::size_t kMaxLines = 20;
  for (std::size_t index = 0; index < std::min(missing.size(), kMaxLines); ++index) {
    say("missing: " + missing[index]);
  }
  if (missing.size() > kMaxLines) {
    say("missing: " + std::to_string(missing.size() - kMaxLines) + " " + what + " more");
  }
  if (missing.empty()) return;
  say(std::to_string(missing.size()) + " of " + std::to_string(total) + " " + what +
      " are missing; " + advice);
}

void print_warnings(const std::vector<std::string>& warnings) {
  std::set<std::string> said;
  for (const std::string& warning : warnings) {
    if (said.insert(warning).second) say("warning: " + warning);
  }
}

void print_hints(const std::vector<std::string>& hints) {
  for (const std::string& hint : hints) say("hint: " + hint);
}

}  // namespace rematch
