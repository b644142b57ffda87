// Writes a command's data to stdout or to a file, which is replaced atomically. Writes messages to
// stderr.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "harness/cli/exit_code.h"
#include "policies/base/json_fwd.h"

namespace rematch {

// Writes to `file`, or to stdout if `file` is empty. Throws FileError.
void write_output(const std::string& file, const Json& json);
void write_output(const std::string& file, const std::string& text);

// Throws UsageError unless the file can be written. Call this before long work starts.
void require_writable(const std::string& file);

void print(const std::string& text);  // prints to stdout; throws FileError
void print_json(const Json& json);    // prints to stdout, indented by two spaces; throws FileError
// Writes the record to `file`, unless `file` is empty. Prints the record as JSON if `as_json` is
// true, and the table otherwise. Calls each function only if its result is needed.
void show(const std::string& file, bool as_json, const std::function<Json()>& record,
          const std::function<std::string()>& table);
// Turns a message into one line, because the message may quote anything from a user's file.
std::string one_line(std::string text);
void say(const std::string& line);  // prints to stderr, prefixed with the program's name
// Prints the last line of a command to stderr and returns `code`.
ExitCode end_with(ExitCode code, const std::string& line);
// Prints at most 20 missing items, one per line, and then how many of `total` are missing. `what`
// is the word for the items, such as "points".
void say_missing(const std::vector<std::string>& missing, std::size_t total,
                 const std::string& what, const std::string& advice);
// Prints each warning once to stderr, as one line.
void print_warnings(const std::vector<std::string>& warnings);
void print_hints(const std::vector<std::string>& hints);  // prints to stderr

// Wraps `text` to the width of stdout's terminal. Each line starts with `indent` spaces and ends
// with a line break.
std::string indented(const std::string& text, std::size_t indent);

// Returns the width of stdout's terminal. Without a terminal, returns the environment's COLUMNS or
// a readable default.
std::size_t terminal_columns();

}  // namespace rematch
