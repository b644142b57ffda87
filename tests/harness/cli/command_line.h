// Runs the built binary as a user would, for tests.
#pragma once

#include <sys/wait.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/support/catch.h"
#include "tests/support/scratch_folder.h"

// Set by the build; without it the binary is looked up on the path.
#ifndef REMATCH_BINARY
#define REMATCH_BINARY "rematch"
#endif

namespace rematch::testing {

struct Outcome {
  int code = -1;
  std::string out;
  std::string err;
};

inline std::string text_of(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

// `arguments` as typed in a shell, after the program's name; `before` stands in front of that.
inline Outcome rematch(const std::string& arguments, const std::string& before = "") {
  const ScratchFolder scratch;
  const std::string command = before + REMATCH_BINARY + " " + arguments + " >" +
                              scratch.file("out") + " 2>" + scratch.file("err") + " </dev/null";
  const int status = std::system(command.c_str());
  Outcome outcome;
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  outcome.out = text_of(scratch.file("out"));
  outcome.err = text_of(scratch.file("err"));
  return outcome;
}

// One line, of this tool, on stderr alone.
inline bool is_one_clear_line(const Outcome& outcome) {
  return outcome.out.empty() && outcome.err.rfind("rematch: ", 0) == 0 &&
         outcome.err.find('\n') == outcome.err.size() - 1;
}

// Exit code 2, and one clear line with `part` in it.
inline void check_usage_error(const std::string& arguments, const std::string& part) {
  const Outcome outcome = rematch(arguments);
  CAPTURE(arguments, outcome.err);
  CHECK(outcome.code == 2);
  CHECK(is_one_clear_line(outcome));
  CHECK_THAT(outcome.err, Catch::Contains(part));
}

}  // namespace rematch::testing
