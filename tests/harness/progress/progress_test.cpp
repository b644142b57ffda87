#include "harness/progress/progress.h"

#include "tests/support/catch.h"

namespace rematch {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST_CASE("work that takes longer than two seconds reports its duration so far") {
  CHECK(elapsed_progress_words("searching", "Ctrl-C ends it", milliseconds(4900)) ==
        "searching for 4 s; Ctrl-C ends it");
  CHECK(elapsed_progress_words("searching", "Ctrl-C ends it", seconds(125)) ==
        "searching for 2 min 5 s; Ctrl-C ends it");
  CHECK(elapsed_progress_words("searching", "Ctrl-C ends it", seconds(12), milliseconds(8100)) ==
        "searching for 12 s, about 9 s left; Ctrl-C ends it");
}

TEST_CASE("short work prints nothing") {
  CHECK_FALSE(elapsed_progress_words("searching", "Ctrl-C ends it", milliseconds(1999)));
}

TEST_CASE("steps that take longer than two seconds report the remaining time") {
  CHECK(step_progress_words("profile", 3, 22, seconds(6)) ==
        "profile: step 3 of 22, about 38 s left");
  CHECK(step_progress_words("profile", 1, 22, seconds(10)) ==
        "profile: step 1 of 22, about 3 min 30 s left");
}

TEST_CASE("nothing is printed for short work, before the first step ends, or after the last step") {
  CHECK_FALSE(step_progress_words("profile", 3, 22, milliseconds(1999)).has_value());
  CHECK_FALSE(step_progress_words("profile", 0, 22, seconds(9)).has_value());
  CHECK_FALSE(step_progress_words("profile", 22, 22, seconds(9)).has_value());
}

TEST_CASE("a progress bar fills as parts finish") {
  CHECK(progress_bar(0, 8) == "[........................]");
  CHECK(progress_bar(3, 8) == "[#########...............]");
  CHECK(progress_bar(8, 8) == "[########################]");
  CHECK(progress_bar(0, 0) == "[########################]");
}

}  // namespace
}  // namespace rematch
