#include "reports/gate/loss_checks.h"

#include <cmath>

#include "policies/base/json.h"
#include "tests/reports/gate/sample_arms.h"
#include "tests/support/catch.h"

namespace rematch {

using testing::arm_of;

TEST_CASE("a check against a fixed threshold says whether noise was measured") {
  const CheckRecord alone = check_difference(arm_of({{5, 4.5F}}), arm_of({{5, 4}}), 0.5);
  CHECK(alone.verdict == GateVerdict::kPass);
  CHECK_THAT(alone.reason, Catch::Contains("noise: not measured"));
  CHECK_FALSE(alone.noise->largest_difference);
  CHECK(check_difference(arm_of({{5, 4.625F}}), arm_of({{5, 4}}), 0.5).verdict ==
        GateVerdict::kFail);
  // Noise of 1 hides differences of 0.5 but not of 3.
  const LossArm noisy = arm_of({{5, 4}, {5, 5}});
  CHECK(check_difference(arm_of({{5, 4}}), noisy, 0.5).verdict == GateVerdict::kInconclusive);
  CHECK(check_difference(arm_of({{5, 7}}), noisy, 0.5).verdict == GateVerdict::kFail);
  CHECK(check_difference(arm_of({{5, 4}}), noisy, 1.5).verdict == GateVerdict::kPass);
}

TEST_CASE("a fixed threshold applies to every run of the candidate") {
  const LossArm candidate = arm_of({{5, 4}, {5, 4.625F}, {5, 4.25F}});
  const CheckRecord outside = check_difference(candidate, arm_of({{5, 4}}), 0.5);
  CHECK(outside.verdict == GateVerdict::kFail);
  CHECK(outside.measured == 0.625);
  CHECK_THAT(outside.reason,
             Catch::StartsWith("largest difference 0.625 (in repeat 1, the furthest "
                               "of 3 runs); allowed: 0.5"));
}

TEST_CASE("a reference with a loss that is not finite makes every loss check inconclusive") {
  const LossArm broken = arm_of({{5, std::nanf("")}, {5, 4}, {5, 4}, {5, 4}});
  const LossArm fine = arm_of({{5, 4}, {5, 4}, {5, 4}, {5, 4}});
  for (const CheckRecord& check :
       {check_bitwise(broken, broken), check_envelope(fine, broken),
        check_equivalence(fine, broken, {}, {}), check_difference(fine, broken, 1)}) {
    CAPTURE(check.check);
    CHECK(check.verdict == GateVerdict::kInconclusive);
  }
  GateRecord record;
  record.points.resize(1);
  record.points[0].checks = {check_difference(fine, broken, 1)};
  const Json json = gate_to_json(record);
  CHECK(json["points"][0]["checks"][0]["noise"]["largest_difference"].is_null());
  CHECK(gate_to_json(gate_from_json(json)) == json);
}

}  // namespace rematch
