// Runs the built binary as a user would, for tests.
#pragma once

#include <string>

namespace rematch::testing {

// The result of a program. `err` excludes the progress lines of a busy machine.
struct Outcome {
  int code = -1;
  std::string out;
  std::string err;
};

// The path of the built binary.
const char* binary();

std::string text_of(const std::string& file);

// Runs the program. `arguments` are as typed in a shell after the program's name. `before` precedes
// the program's name.
Outcome rematch(const std::string& arguments, const std::string& before = "");

// Runs another program in the same way.
Outcome run_program(const std::string& program, const std::string& arguments,
                    const std::string& before = "");

// Drops the progress lines, which appear only if a command takes longer than two seconds.
std::string without_progress(const std::string& err);

// Returns whether the only output is one line on stderr, written by this tool.
bool is_one_clear_line(const Outcome& outcome);

// Requires exit code 2, and one clear line that contains `part`.
void check_usage_error(const std::string& arguments, const std::string& part);

}  // namespace rematch::testing
