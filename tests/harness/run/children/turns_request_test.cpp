#include "harness/run/children/turns_request.h"

#include "policies/base/json.h"
#include "tests/support/catch.h"

namespace rematch {
namespace {

PointRequest arm(const std::string& policy) {
  PointRequest request;
  request.pass = Pass::kTime;
  request.policy = policy;
  request.num_steps = 3;
  return request;
}

TEST_CASE("a request to alternate arms is unchanged after a round trip through JSON") {
  TurnsRequest request;
  request.arms = {arm("none"), arm("full")};
  request.reference = 1;
  request.rule = {.least = 2, .most = 5, .precision = 0.5, .most_repeats = 1};
  const Json json = turns_request_to_json(request);
  REQUIRE(is_turns_request(json));
  const TurnsRequest read = turns_request_from_json(json);
  REQUIRE(read.arms.size() == 2);
  CHECK(read.arms[1].policy == "full");
  CHECK(read.arms[1].num_steps == 3);
  CHECK(read.reference == 1);
  CHECK(read.rule.least == 2);
  CHECK(read.rule.most == 5);
  CHECK(read.rule.precision == 0.5);
  CHECK(read.rule.most_repeats == 1);
  CHECK_FALSE(is_turns_request(request_to_json(arm("none"))));
}

TEST_CASE("a reference that is not an arm is refused") {
  TurnsRequest request;
  request.arms = {arm("none")};
  request.reference = 1;
  CHECK_THROWS_AS(turns_request_from_json(turns_request_to_json(request)), FormatError);
}

}  // namespace
}  // namespace rematch
