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
#include "policies/base/json.h"
#include "reports/render/format.h"

namespace rematch {

void write_output(const std::string& file, const Json& json) {
  if (file.empty()) {
    print_json(json);
  } else {
    write_json_file(file, json);
  }
}

void write_output(const std::string& file, const std::string& text) {
  if (file.empty()) {
    print(text);
  } else {
    write_file_atomically(file, text);
  }
}

void print_json(const Json& json) { print(json.dump(2) + "\n"); }

void require_writable(const std::string& file) {
  namespace fs = std::filesystem;
  if (file.empty()) return;
  const fs::path parent = fs::path(file).parent_path();
  const std::string folder = parent.empty() ? "." : parent.string();
  if (!fs::is_directory(folder)) {
    throw UsageError("cannot write '" + file + "': there is no folder '" + folder +
                     "'; make it first");
  }
  if (fs::is_directory(file)) {
    throw UsageError("cannot write '" + file + "': it is a folder; give a file name in it");
  }
  if (access(folder.c_str(), W_OK | X_OK) != 0) {
    throw UsageError("cannot write '" + file + "': " + std::strerror(errno) +
                     "; choose a folder that you may write to");
  }
}

void print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);  // what goes to stderr next stands below it
}

std::size_t terminal_columns() {
  constexpr std::size_t kWithoutTerminal = 120;
  constexpr int kLeastColumns = 40;
  winsize size{};
  const bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  if (known) return size.ws_col;
  const char* said = std::getenv("COLUMNS");
  const int columns = said == nullptr ? 0 : std::atoi(said);
  return columns >= kLeastColumns ? static_cast<std::size_t>(columns) : kWithoutTerminal;
}

std::string indented(const std::string& text, std::size_t indent) {
  constexpr std::size_t kLeastText = 30;  // however narrow the terminal is
  std::string lines;
  for (const std::string& line :
       wrap(text, std::max(terminal_columns(), indent + kLeastText) - indent)) {
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

void print_warnings(const std::vector<std::string>& warnings) {
  std::set<std::string> said;
  for (const std::string& warning : warnings) {
    if (!said.insert(warning).second) continue;
    std::fprintf(stderr, "rematch: warning: %s\n", one_line(warning).c_str());
  }
}

void print_hints(const std::vector<std::string>& hints) {
  for (const std::string& hint : hints) std::fprintf(stderr, "rematch: hint: %s\n", hint.c_str());
}

}  // namespace rematch
