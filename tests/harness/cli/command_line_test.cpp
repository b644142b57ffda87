#include "tests/harness/cli/command_line.h"

#include "tests/support/catch.h"

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

}  // namespace
}  // namespace rematch::testing
