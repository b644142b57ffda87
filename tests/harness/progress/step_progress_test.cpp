#include "harness/progress/progress.h"

#include "tests/support/catch.h"

namespace rematch {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST_CASE("steps that take longer than two seconds say how long they will take") {
  CHECK(step_progress_words("profile", 3, 22, seconds(6)) ==
        "profile: step 3 of 22, about 38 s left");
  CHECK(step_progress_words("profile", 1, 22, seconds(10)) ==
        "profile: step 1 of 22, about 3 min 30 s left");
}

TEST_CASE("there is no word of short work, before the first step and after the last") {
  CHECK_FALSE(step_progress_words("profile", 3, 22, milliseconds(1999)).has_value());
  CHECK_FALSE(step_progress_words("profile", 0, 22, seconds(9)).has_value());
  CHECK_FALSE(step_progress_words("profile", 22, 22, seconds(9)).has_value());
}

TEST_CASE("a bar fills as parts are done") {
  CHECK(progress_bar(0, 8) == "[........................]");
  CHECK(progress_bar(3, 8) == "[#########...............]");
  CHECK(progress_bar(8, 8) == "[########################]");
  CHECK(progress_bar(0, 0) == "[########################]");
}

}  // namespace
}  // namespace rematch
