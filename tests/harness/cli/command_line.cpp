#include "tests/harness/cli/command_line.h"

#include <sys/wait.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <regex>
#include <sstream>

#include "tests/support/catch.h"
#include "tests/support/scratch_folder.h"

namespace rematch::testing {

const char* binary() { return REMATCH_BINARY; }

std::string text_of(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

Outcome rematch(const std::string& arguments, const std::string& before) {
  return run_program(binary(), arguments, before);
}

Outcome run_program(const std::string& program, const std::string& arguments,
                    const std::string& before) {
  const ScratchFolder scratch;
  const std::string command = before + program + " " + arguments + " >" + scratch.file("out") +
                              " 2>" + scratch.file("err") + " </dev/null";
  const int status = std::system(command.c_str());
  Outcome outcome;
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  outcome.out = text_of(scratch.file("out"));
  outcome.err = without_progress(text_of(scratch.file("err")));
  return outcome;
}

std::string without_progress(const std::string& err) {
  static const std::regex progress(
      "rematch: (searching for .*; .*|.*: step \\d+ of \\d+, about .* left)");
  std::istringstream lines(err);
  std::string rest;
  for (std::string line; std::getline(lines, line);) {
    if (std::regex_match(line, progress)) continue;
    rest += line;
    if (!lines.eof()) rest += '\n';
  }
  return rest;
}

bool is_one_clear_line(const Outcome& outcome) {
  const std::string& err = outcome.err;
  return outcome.out.empty() && err.rfind("rematch: ", 0) == 0 && err.find('\n') == err.size() - 1;
}

void check_usage_error(const std::string& arguments, const std::string& part) {
  const Outcome outcome = rematch(arguments);
  CAPTURE(arguments, outcome.err);
  CHECK(outcome.code == 2);
  CHECK(is_one_clear_line(outcome));
  CHECK_THAT(outcome.err, Catch::Contains(part));
}

}  // namespace rematch::testing
