// Runs the built binary as a user would, for tests.
#pragma once

#include <string>

namespace rematch::testing {

// What a program left. `err` lacks the progress lines of a busy machine.
struct Outcome {
  int code = -1;
  std::string out;
  std::string err;
};

// The path of the built binary.
const char* binary();

std::string text_of(const std::string& file);

// `arguments` as typed in a shell, after the program's name; `before` stands in front of that.
Outcome rematch(const std::string& arguments, const std::string& before = "");

// The same of another program.
Outcome run_program(const std::string& program, const std::string& arguments,
                    const std::string& before = "");

// Drops the progress lines, which appear only if a command takes longer than two seconds.
std::string without_progress(const std::string& err);

// One line, of this tool, on stderr alone.
bool is_one_clear_line(const Outcome& outcome);

// Exit code 2, and one clear line with `part` in it.
void check_usage_error(const std::string& arguments, const std::string& part);

}  // namespace rematch::testing
