#include "policies/trace/routing_skew.h"

#include "tests/support/catch.h"

namespace rematch {
namespace {

TEST_CASE("rows of a skewed rank are rounded up") {
  CHECK(skewed_rows(64, 100) == 64);
  CHECK(skewed_rows(64, 130) == 84);  // 83.2
  CHECK(skewed_rows(50, 130) == 65);
  CHECK(skewed_rows(64, 400) == 256);
}

TEST_CASE("a skew is written as it is given to --routing-skew") {
  CHECK(routing_skew_text(130) == "1.3");
  CHECK(routing_skew_text(125) == "1.25");
  CHECK(routing_skew_text(205) == "2.05");
  CHECK(routing_skew_text(1000) == "10");
  CHECK(routing_skew_words({{"ep", 2}, {"routing_skew_percent", 130}}) == ", routing skew 1.3");
  CHECK(routing_skew_words({{"ep", 2}}) == "");
}

}  // namespace
}  // namespace rematch
