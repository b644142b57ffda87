#include "reports/gate/gate_curves.h"

#include "policies/base/json.h"
#include "reports/gate/loss_checks.h"
#include "reports/render/tables/gate_table.h"
#include "reports/schema/validate.h"
#include "tests/reports/gate/sample_arms.h"
#include "tests/support/catch.h"

namespace rematch {
namespace {

using testing::arm_of;
using Runs = std::vector<std::vector<float>>;

// Puts steps 10, 20, ... on lines 2, 3, ... of a CSV file.
RunLosses curve_of(const std::string& file, const std::vector<float>& losses) {
  RunLosses curve{file, std::string(64, 'a'), {}, {}};
  for (const float loss : losses) {
    const int index = static_cast<int>(curve.points.size());
    curve.points.push_back({10 * (index + 1), loss, index + 2, 4});
  }
  return curve;
}

std::vector<RunLosses> curves_of(const std::string& name, const Runs& runs) {
  std::vector<RunLosses> curves;
  for (const auto& losses : runs) {
    curves.push_back(curve_of(name + std::to_string(curves.size()) + ".csv", losses));
  }
  return curves;
}

GateRecord gate_of(const std::vector<RunLosses>& candidates,
                   const std::vector<RunLosses>& references, const GateSettings& settings = {}) {
  return std::get<GateRecord>(gate_curves(candidates, references, settings));
}

const Runs kReferences = {{5, 4}, {5, 4.25F}, {5, 4.125F}, {5, 4.0625F}};

}  // namespace

// The same numbers in a report and in files must give the same results, because the checks share
// their code.
TEST_CASE("curves from files are checked with the same limits as runs of a report") {
  for (const float loss : {4.F, 4.3F, 4.74F, 4.76F, 9.F}) {
    CAPTURE(loss);
    const Runs references = {{50, 4}, {50, 4.25F}, {50, 4.125F}, {50, 4.0625F}};
    const Runs candidates = {{50, loss}, {50, 4.25F}, {50, 4.125F}, {50, 4}};
    GateSettings settings;
    settings.loss = LossTier::kEquivalence;
    settings.equivalence_margin = 0.5;
    settings.window_steps = 1;
    settings.max_loss_difference = 0.5;
    const auto own = curves_of("mine", candidates);
    const auto base = curves_of("base", references);
    const auto checks = gate_of(own, base, settings).curves->checks;
    REQUIRE(checks.size() == 2);
    const auto envelope = gate_of(own, base).curves->checks;
    REQUIRE(envelope.size() == 1);
    const LossArm arm = arm_of(candidates);
    const LossArm reference = arm_of(references);
    const std::vector<std::pair<CheckRecord, CheckRecord>> pairs = {
        {checks[0], check_equivalence(arm, reference, 0.5, 1)},
        {checks[1], check_difference(arm, reference, 0.5)},
        {envelope[0], check_envelope(arm, reference)}};
    for (const auto& [found, expected] : pairs) {
      CAPTURE(expected.check);
      CHECK(found.check == expected.check);
      CHECK(found.tier == expected.tier);
      CHECK(found.verdict == expected.verdict);
      CHECK(found.measured == expected.measured);
      CHECK(found.limit == expected.limit);
      CHECK(found.noise->largest_difference == expected.noise->largest_difference);
    }
  }
}

// At step 20 the loss of mine1 differs by 0.75 from the nearest reference, 4.25. The allowed
// difference for two runs is 2.2 times 0.25.
TEST_CASE("the error for a curve outside the envelope names its step, line and column") {
  const GateRecord record =
      gate_of(curves_of("mine", {{5, 4}, {5, 5}}), curves_of("base", kReferences));
  CHECK(record.verdict == GateVerdict::kFail);
  CHECK_THAT(record.curves->checks.at(0).reason,
             Catch::StartsWith("largest difference 0.75 (step 20, mine1.csv:3:4) from the nearest "
                               "of 4 reference runs; allowed is 0.55"));
}

TEST_CASE(
    "the gate is inconclusive if a curve lacks steps of the reference, or references have "
    "different steps") {
  const auto base = curves_of("base", {{5, 4, 3}, {5, 4, 3}, {5, 4, 3}});
  auto shorter = curves_of("mine", {{5, 4}});
  shorter[0].empty.push_back({30, 4});
  const GateRecord lacking = gate_of(shorter, base);
  CHECK(lacking.verdict == GateVerdict::kInconclusive);
  REQUIRE(lacking.curves->checks.size() == 1);
  CHECK(lacking.curves->checks[0].reason ==
        "mine0.csv has no loss at step 30 (line 4 is empty there), but base0.csv:4:4 has one; "
        "mine0.csv lacks 1 of 3 steps");
  const GateRecord longer = gate_of(curves_of("mine", {{5, 4, 3, 2}}), base);
  CHECK(longer.verdict == GateVerdict::kPass);
  CHECK_THAT(longer.curves->checks.at(0).reason,
             Catch::EndsWith("; 1 step of mine0.csv has no counterpart"));
  // References must have the same steps, in whatever order they are given.
  for (const Runs& runs : {Runs{{5, 4, 3}, {5, 4}}, Runs{{5, 4}, {5, 4, 3}}}) {
    CHECK(gate_of(curves_of("mine", {{5, 4, 3}}), curves_of("base", runs)).verdict ==
          GateVerdict::kInconclusive);
  }
}

TEST_CASE("curves without a common step are an error") {
  auto shifted = curves_of("mine", {{5, 4}});
  for (LossPoint& point : shifted[0].points) point.step += 5;
  const auto base = curves_of("base", {{5, 4}});
  const auto decision = gate_curves(shifted, base, {});
  REQUIRE(std::holds_alternative<NoCommonSteps>(decision));
  CHECK(std::get<NoCommonSteps>(decision).message ==
        "the curves have no common step: mine0.csv has steps 15 to 25, base0.csv has steps 10 to "
        "20; count "
        "steps from the same start and log them at the same interval");
  CHECK(std::holds_alternative<NoCommonSteps>(gate_curves(base, {base[0], shifted[0]}, {})));
}

TEST_CASE(
    "a candidate with a loss that is not finite fails, and a reference with such a loss sets no "
    "limit") {
  const auto base = curves_of("base", {{5, 4}, {5, 4}, {5, 4}});
  auto broken = base;
  broken[1].points[1].loss = std::nullopt;
  CHECK(gate_of(broken, base).verdict == GateVerdict::kFail);
  CHECK_THAT(gate_of(broken, base).curves->checks.at(0).reason,
             Catch::StartsWith("base1.csv:3:4: the loss of step 20 is not finite"));
  CHECK(gate_of(base, broken).verdict == GateVerdict::kInconclusive);
  // Steps after the reference's last step are checked too.
  auto longer = curves_of("mine", {{5, 4, 3}});
  longer[0].points[2].loss = std::nullopt;
  CHECK(gate_of(longer, base).verdict == GateVerdict::kFail);
}

// Two runs differ by 0.25, so the envelope is 0.5. The mean loss falls by 0.89.
TEST_CASE(
    "if the reference's loss does not fall, no candidate passes, but differing losses still fail") {
  struct Case {
    Runs references;
    const char* reason;  // reason of the failure; empty if the curves pass
  };
  const Case rows[] = {
      {kReferences, ""},
      {{{5, 4, 3}, {5, 4, 3}, {5, 4, 3}}, ""},
      {{{5}, {5}, {5}}, "one step cannot show a falling loss"},
      {{{10.375F, 10.375F}, {10.375F, 10.375F}, {10.375F, 10.375F}},
       "the reference's loss is 10.38 at all 2 steps, so a run that learns nothing would pass; "
       "check that the optimizer steps and that gradients are not zero"},
      {{{4, 5}, {4, 5}, {4, 5}}, "the reference's loss does not fall over 2 steps"},
      {{{5, 4}, {5, 4.75F}, {5, 4}},
       "the reference's loss falls by 0.75 over 2 steps, and 1.5 is allowed"},
      // The reference's loss varies by 1 from step to step, and no step has a much higher loss.
      {{{5, 4, 5, 4, 5, 4, 5, 4}, {5, 4, 5, 4, 5, 4, 5, 4}, {5, 4, 5, 4, 5, 4, 5, 4}},
       "four standard errors of this fall"},
      // The first step has a much higher loss. From the second step on, the loss varies as in the
      // case above.
      {{{50, 4, 5, 4, 5, 4, 5, 4}, {50, 4, 5, 4, 5, 4, 5, 4}, {50, 4, 5, 4, 5, 4, 5, 4}}, ""},
  };
  for (const Case& row : rows) {
    CAPTURE(row.reason);
    const auto base = curves_of("base", row.references);
    auto same = curves_of("mine", {row.references.front()});
    const GateRecord equal = gate_of(same, base);
    const bool passes = std::string(row.reason).empty();
    CHECK(equal.verdict == (passes ? GateVerdict::kPass : GateVerdict::kInconclusive));
    CHECK_THAT(equal.curves->checks.at(0).reason, Catch::Contains(row.reason));
    same[0].points.back().loss = 100;
    CHECK(gate_of(same, base).verdict == GateVerdict::kFail);
  }
}

TEST_CASE("each check of curves requires a loss that falls by more than its tolerance") {
  const auto base = curves_of("base", {{5, 4}, {5, 4}, {5, 4}, {5, 4}});
  GateSettings settings;
  settings.loss = LossTier::kEquivalence;
  settings.equivalence_margin = 2;
  settings.max_loss_difference = 0.5;
  const auto checks =
      gate_of(curves_of("mine", {{5, 4}, {5, 4}, {5, 4}, {5, 4}}), base, settings).curves->checks;
  REQUIRE(checks.size() == 2);
  CHECK(checks[0].verdict == GateVerdict::kInconclusive);
  CHECK_THAT(checks[0].reason,
             Catch::Contains("and 2 is allowed, so a run that learns nothing would "
                             "pass; lower the allowed difference"));
  CHECK(checks[1].verdict == GateVerdict::kPass);
}

TEST_CASE("a record of gated curves fits its schema and reads back") {
  const GateRecord record =
      gate_of(curves_of("mine", {{5, 4.0625F}}), curves_of("base", kReferences));
  const Json json = gate_to_json(record);
  CHECK(validate(json).value_or("") == "");
  CHECK(gate_to_json(gate_from_json(json)) == json);
  CHECK(json["curves"]["compared_steps"] == 2);
  CHECK(json["curves"]["last_step"] == 20);
  CHECK(json["points"].empty());
  CHECK_THAT(render_gate(record, TableFormat::kText),
             Catch::Contains("PASS: mine0.csv against 4 curves over 2 steps, 10 to 20."));
}

}  // namespace rematch
