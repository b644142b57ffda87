#include "reports/gate/loss_checks.h"

#include "tests/reports/gate/sample_arms.h"
#include "tests/support/catch.h"

namespace rematch {

using testing::arm_of;
using testing::kLosses;

TEST_CASE(
    "T0 passes if all bits are equal; otherwise it names the first step and tensor that differ") {
  const LossArm reference = arm_of({kLosses});
  CHECK(check_bitwise(reference, reference).verdict == GateVerdict::kPass);
  struct Case {
    const char* tensor;
    std::string StepRecord::*bits;
  };
  for (const Case& row : {Case{"loss", &StepRecord::loss_bits},
                          Case{"gradient norm", &StepRecord::gradient_norm_bits},
                          Case{"parameters", &StepRecord::parameter_hash},
                          Case{"generator state", &StepRecord::generator_hash}}) {
    CAPTURE(row.tensor);
    LossArm other = reference;
    other.runs[0][2].*row.bits = "0x0f";
    const CheckRecord check = check_bitwise(other, reference);
    CHECK(check.verdict == GateVerdict::kFail);
    CHECK(check.first_different_step == 2);
    CHECK(check.first_different_tensor == row.tensor);
  }
}

TEST_CASE("T0 is inconclusive if the reference is not reproducible") {
  const LossArm reference = arm_of({kLosses, {5, 4, 3, 2.5F}});
  const CheckRecord check = check_bitwise(arm_of({{5, 4, 3, 1}}), reference);
  CHECK(check.verdict == GateVerdict::kInconclusive);
  CHECK_THAT(check.reason, Catch::StartsWith("refused: run 2 of the reference"));
  LossArm once = arm_of({kLosses});
  once.deterministic = false;
  CHECK(check_bitwise(arm_of({{5, 4, 3, 1}}), once).verdict == GateVerdict::kInconclusive);
}

TEST_CASE("T0 does not pass values that are missing or unfinished") {
  const LossArm reference = arm_of({kLosses});
  CHECK(check_bitwise(arm_of({{5, 4, 3}}), reference).verdict == GateVerdict::kInconclusive);
  CHECK(check_bitwise(arm_of({{}}), reference).verdict == GateVerdict::kInconclusive);
  CHECK(check_bitwise(reference, arm_of({{}})).verdict == GateVerdict::kInconclusive);
  struct Case {
    const char* name;
    std::string StepRecord::*bits;
  };
  for (const Case& row : {Case{"gradient norm", &StepRecord::gradient_norm_bits},
                          Case{"parameters", &StepRecord::parameter_hash},
                          Case{"generator state", &StepRecord::generator_hash}}) {
    CAPTURE(row.name);
    LossArm blind = reference;
    blind.runs[0][1].*row.bits = "";
    for (const CheckRecord& check : {check_bitwise(blind, blind), check_bitwise(blind, reference),
                                     check_bitwise(reference, blind)}) {
      CHECK(check.verdict == GateVerdict::kInconclusive);
      CHECK(check.reason ==
            std::string("no bits of the ") + row.name + " were recorded at step 1 of none");
    }
  }
}

TEST_CASE("T0 requires the reference's bits in every run of the candidate") {
  const CheckRecord check =
      check_bitwise(arm_of({kLosses, kLosses, {5, 4, 3, 1}}), arm_of({kLosses}));
  CHECK(check.verdict == GateVerdict::kFail);
  CHECK(check.first_different_step == 3);
  CHECK(check.reason == "first differs at step 3 in loss in repeat 2");
}

}  // namespace rematch
