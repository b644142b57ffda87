#include "reports/gate/loss_checks.h"

#include "tests/reports/gate/sample_arms.h"
#include "tests/support/catch.h"

namespace rematch {

using testing::arm_of;

// The reference's runs differ by at most 0.25, so a candidate may differ from the nearest run by up
// to 0.5.
TEST_CASE("with three reference runs, T1 allows twice the largest difference between two of them") {
  const LossArm reference = arm_of({{5, 4}, {5, 4.25F}, {5, 4.125F}});
  CHECK(check_envelope(arm_of({{5, 4.75F}}), reference).verdict == GateVerdict::kPass);
  const CheckRecord outside = check_envelope(arm_of({{5, 4.8125F}}), reference);
  CHECK(outside.verdict == GateVerdict::kFail);
  CHECK(outside.measured == 0.5625);
  CHECK(outside.limit == 0.5);
  CHECK(outside.noise->largest_difference == 0.25);
  CHECK(check_envelope(arm_of({{5, 4}}), arm_of({{5, 4}, {5, 4}})).verdict ==
        GateVerdict::kInconclusive);
  CHECK(outside.reason ==
        "largest difference 0.5625 from the nearest of 3 reference runs; allowed is 0.5, twice the "
        "largest difference between two reference runs");
  CHECK_THAT(outside.noise->detects, Catch::EndsWith("fails at most 0.5 % of the time"));
  CHECK_THAT(
      check_envelope(arm_of({{5, 4}}), arm_of({{5, 4}, {5, 4.25F}, {5, 4}, {5, 4}})).noise->detects,
      Catch::EndsWith("fails at most 0.3 % of the time"));
  // A deterministic reference allows no difference.
  CHECK(check_envelope(arm_of({{5, 4.0001F}}), arm_of({{5, 4}, {5, 4}, {5, 4}})).verdict ==
        GateVerdict::kFail);
}

// For four runs the envelope is 2.4 times 0.25, which is 0.6. The distances of the runs from the
// nearest reference run are 0, 0.5, 0.625 and 0.
TEST_CASE(
    "T1 compares every run of the candidate and names the run that is furthest from the "
    "reference") {
  const LossArm reference = arm_of({{5, 4}, {5, 4.25F}, {5, 4.125F}});
  const CheckRecord outside =
      check_envelope(arm_of({{5, 4}, {5, 4.75F}, {5, 4.875F}, {5, 4.25F}}), reference);
  CHECK(outside.verdict == GateVerdict::kFail);
  CHECK(outside.measured == 0.625);
  CHECK(outside.limit == Approx(0.6));
  CHECK(outside.reason ==
        "largest difference 0.625 (in repeat 2, the furthest of 4 runs) from the nearest of 3 "
        "reference runs; allowed is 0.6, 2.4 times the largest difference between two reference "
        "runs");
  const CheckRecord within =
      check_envelope(arm_of({{5, 4.75F}, {5, 4}, {5, 4}, {5, 4.25F}}), reference);
  CHECK(within.verdict == GateVerdict::kPass);
  CHECK_THAT(within.reason, Catch::Contains("(in the point's own run, the furthest of 4 runs)"));
  // A deterministic reference allows no difference, however many runs there are.
  const LossArm exact = arm_of({{5, 4}, {5, 4}, {5, 4}});
  CHECK(check_envelope(arm_of({{5, 4}, {5, 4}, {5, 4.0001F}}), exact).verdict ==
        GateVerdict::kFail);
}

}  // namespace rematch
