#include "tests/harness/cli/command_line.h"

#include <csignal>

#include "tests/support/catch.h"
#include "tests/support/scratch_folder.h"

namespace rematch::testing {
namespace {

TEST_CASE("progress lines of a slow machine are removed before tests compare messages") {
  CHECK(without_progress("rematch: searching for 4 s; Ctrl-C ends it\n"
                         "rematch: nothing fits\n"
                         "rematch: profile: step 3 of 22, about 1 min 5 s left\n") ==
        "rematch: nothing fits\n");
  CHECK(without_progress("rematch: searching is over\nno end") ==
        "rematch: searching is over\nno end");
  const Outcome outcome =
      run_program("sh", "-c 'echo \"rematch: searching for 4 s; wait\" >&2; echo said >&2'");
  CHECK(outcome.err == "said\n");
}

// The command waits for the pipe, which opens only once the command reads it. No guard polls for
// the signal at that point.
TEST_CASE(
    "a signal ends the command with a message even if the command does not poll for signals") {
  const ScratchFolder scratch;
  const std::string pipe = scratch.file("pipe");
  const Outcome outcome = run_program(
      "mkfifo " + pipe + "; {", std::string(binary()) + " validate " + pipe + " & pid=$!; exec 3>" +
                                    pipe + "; kill -TERM $pid; wait $pid; exit $?; }");
  CHECK(outcome.code == 128 + SIGTERM);
  CHECK(outcome.err == "rematch: interrupted\n");
}

}  // namespace
}  // namespace rematch::testing
