// The destination of a command's data: stdout, or a file that is replaced as a whole.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "harness/cli/exit_code.h"
#include "policies/base/json_fwd.h"

namespace rematch {

// To `file`, or to stdout if that is empty. Throws FileError.
void write_output(const std::string& file, const Json& json);
void write_output(const std::string& file, const std::string& text);

// Throws UsageError unless a file of this name can be written: said before anything runs for
// minutes.
void require_writable(const std::string& file);

void print(const std::string& text);  // to stdout; throws FileError
void print_json(const Json& json);    // the same, indented by two spaces
// A record into `file`, unless that is empty, and on stdout as JSON or as a table. Makes only what
// is asked for.
void show(const std::string& file, bool as_json, const std::function<Json()>& record,
          const std::function<std::string()>& table);
// A message may quote a user's file, whatever stands in it.
std::string one_line(std::string text);
void say(const std::string& line);  // to stderr, behind the program's name
// The same for a command that ends with it: returns `code`.
ExitCode end_with(ExitCode code, const std::string& line);
// At most 20 of those missing, each in a line, then how many of `total` they are. `what`: "points".
void say_missing(const std::vector<std::string>& missing, std::size_t total,
                 const std::string& what, const std::string& advice);
// To stderr, each once and in one line.
void print_warnings(const std::vector<std::string>& warnings);
void print_hints(const std::vector<std::string>& hints);  // to stderr

// `text` wrapped to stdout's terminal, each line behind `indent` spaces and ended.
std::string indented(const std::string& text, std::size_t indent);

// The width of stdout's terminal; without a terminal, COLUMNS or a readable default.
std::size_t terminal_columns();

}  // namespace rematch
