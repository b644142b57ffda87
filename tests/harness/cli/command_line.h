// Runs the built binary as a user would, for tests.
#pragma once

#include <string>

namespace rematch::testing {

// Holds the exit code and the output of a program. `err` lacks progress lines, which appear only on
// a slow machine.
struct Outcome {
  int code = -1;
  std::string out;
  std::string err;
};

// The path of the built binary.
const char* binary();

std::string text_of(const std::string& file);

// Runs the binary in a shell. `arguments` follow the name of the binary in the command, and
// `before` precedes it.
Outcome rematch(const std::string& arguments, const std::string& before = "");

// Runs another program as rematch() runs the binary.
Outcome run_program(const std::string& program, const std::string& arguments,
                    const std::string& before = "");

// Drops the progress lines, which appear only if a command takes longer than two seconds.
std::string without_progress(const std::string& err);

// Returns whether the program printed only one line, on stderr, and the line is from this tool.
bool is_one_clear_line(const Outcome& outcome);

// Requires exit code 2, and one clear line that contains `part`.
void check_usage_error(const std::string& arguments, const std::string& part);

}  // namespace rematch::testing
