// Runs the built binary as a user would, for tests.
#pragma once

#include <string>

namespace rematch::testing {

// Holds the exit code and the output of a program. Progress lines are removed from `err`, because
// they appear only on a slow machine.
struct Outcome {
  int code = -1;
  std::string out;
  std::string err;
};

// The path of the built binary.
const char* binary();

std::string text_of(const std::string& file);

// Runs the binary in a shell. The command is `before`, the binary's path, and `arguments`.
Outcome rematch(const std::string& arguments, const std::string& before = "");

// Runs `program` in a shell, instead of the binary.
Outcome run_program(const std::string& program, const std::string& arguments,
                    const std::string& before = "");

// Drops the progress lines, which appear only if a command takes longer than two seconds.
std::string without_progress(const std::string& err);

// Returns whether the program printed exactly one line, on stderr, which begins with this tool's
// name.
bool is_one_clear_line(const Outcome& outcome);

// Requires exit code 2, and one clear line that contains `part`.
void check_usage_error(const std::string& arguments, const std::string& part);

}  // namespace rematch::testing
