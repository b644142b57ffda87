#include "reports/gate/loss_checks.h"

#include "tests/reports/gate/sample_arms.h"
#include "tests/support/catch.h"

namespace rematch {

using testing::arm_of;
using testing::kLosses;

// Runs differ from their mean by 0.01. The check uses the mean over the last two of four steps.
TEST_CASE("T2 compares mean losses over the last steps, with four runs of each side") {
  const auto arm = [](float shift) {
    std::vector<std::vector<float>> runs;
    for (const float own : {-0.01F, 0.0F, 0.0F, 0.01F}) {
      runs.push_back({9.0F + 100 * shift, 4, 3 + shift + own, 3 + shift + own});
    }
    return arm_of(runs);
  };
  const auto verdict = [&](float shift, std::optional<double> margin) {
    return check_equivalence(arm(shift), arm(0), margin, std::nullopt).verdict;
  };
  CHECK(verdict(0, std::nullopt) == GateVerdict::kPass);
  CHECK(verdict(1, std::nullopt) == GateVerdict::kFail);
  CHECK(verdict(1, 1.5) == GateVerdict::kPass);
  CHECK(verdict(0.3F, 0.3) == GateVerdict::kInconclusive);
  CHECK(check_equivalence(arm_of({kLosses}), arm(0), 1, {}).verdict == GateVerdict::kInconclusive);
  CHECK(check_equivalence(arm(0.3F), arm(0), 0.5, 4).verdict == GateVerdict::kFail);
}

// Losses of 1, 2 and 3 have a mean of 2.5 over the last two steps. No run varies.
TEST_CASE("T2 compares the difference with the margin if no run varies") {
  const LossArm reference = arm_of({{1, 2, 3}, {1, 2, 3}, {1, 2, 3}, {1, 2, 3}});
  const LossArm other = arm_of({{1, 2, 4}, {1, 2, 4}, {1, 2, 4}, {1, 2, 4}});
  const CheckRecord equal = check_equivalence(reference, reference, std::nullopt, 2);
  CHECK(equal.verdict == GateVerdict::kPass);
  CHECK(equal.reason == "mean losses differ by 0 and do not vary between runs; allowed is 0");
  CHECK_THAT(equal.noise->detects, Catch::StartsWith("any difference of the mean losses"));
  CHECK(check_equivalence(other, reference, std::nullopt, 2).verdict == GateVerdict::kFail);
  CHECK(check_equivalence(other, reference, 0.5, 2).verdict == GateVerdict::kPass);
  CHECK(check_equivalence(other, reference, 0.25, 2).verdict == GateVerdict::kFail);
}

// The reference's runs differ from their mean by at most 0.01. The candidate's fourth run differs
// by 50.
TEST_CASE("T2 does not widen its margin if one run of the candidate is an outlier") {
  const LossArm reference = arm_of({{3, 2.99F}, {3, 3.0F}, {3, 3.0F}, {3, 3.01F}});
  const LossArm astray = arm_of({{3, 3}, {3, 3.01F}, {3, 2.99F}, {3, 50}});
  const CheckRecord check = check_equivalence(astray, reference, std::nullopt, 1);
  CHECK(check.verdict == GateVerdict::kInconclusive);
  CHECK_THAT(check.reason, Catch::Contains("vary more than the reference's; run more repeats"));
  CHECK(check.limit.value() < 0.05);
  CHECK(check_equivalence(reference, astray, std::nullopt, 1).verdict == GateVerdict::kPass);
  // The reference's runs are all equal, so they do not show how much runs usually vary.
  const LossArm still = arm_of({{3, 3}, {3, 3}, {3, 3}, {3, 3}});
  CHECK(check_equivalence(astray, still, std::nullopt, 1).verdict == GateVerdict::kInconclusive);
}

TEST_CASE("T2 rejects a window that is longer than the runs") {
  const LossArm arm = arm_of({{1, 2, 3}, {1, 2, 3}, {1, 2, 3}, {1, 2, 3}});
  const CheckRecord check = check_equivalence(arm, arm, std::nullopt, 4);
  CHECK(check.verdict == GateVerdict::kInconclusive);
  CHECK(check.reason == "a window of 4 steps is out of range; allowed: 1 to 3");
  CHECK(check_equivalence(arm, arm, std::nullopt, 3).verdict == GateVerdict::kPass);
}

}  // namespace rematch
