#include "reports/gate/gate.h"

#include <cmath>
#include <stdexcept>

#include "policies/base/json.h"
#include "reports/record/json/record_json.h"
#include "reports/render/tables/gate_table.h"
#include "reports/schema/validate.h"
#include "tests/reports/gate/sample_arms.h"
#include "tests/reports/sample_report.h"
#include "tests/support/catch.h"
#include "tests/support/golden.h"

namespace rematch {
namespace {

using testing::gate;
using testing::kLosses;
using testing::report_of;
using testing::sample_oom;
using testing::steps_of;
using testing::trained_point;

const CheckRecord& check_of(const GateRecord& record, const std::string& name) {
  for (const CheckRecord& check : record.points.at(0).checks) {
    if (check.check == name) return check;
  }
  throw std::logic_error("no check " + name);
}

GateSettings tier(LossTier loss) {
  GateSettings settings;
  settings.loss = loss;
  return settings;
}

}  // namespace

// A report holds gradient hashes for its reference, and for points whose gradients differ from the
// reference's. Policy `full` has no hashes, because its gradients have the reference's bits.
TEST_CASE("a failed bitwise check names the gradient that differs between two reports") {
  const auto report_with = [](const std::string& hash, const std::string& norm) {
    Report report = report_of({trained_point("none"), trained_point("full")});
    report.points[0].steps[0].gradient_hashes = {{"embed.weight", "cc"}, {"head.weight", hash}};
    for (PointRecord& point : report.points) point.steps[0].gradient_norm_bits = norm;
    return report;
  };
  const Report reference = report_with("dd", "0x3ff0000000000000");
  Report report = report_with("ee", "0x3ff0000000000001");
  const auto first_tensor = [&](std::size_t point) {
    const GateRecord record = gate(report, reference, tier(LossTier::kBitwise));
    const CheckRecord& check = record.points.at(point).checks.at(0);
    CHECK(check.verdict == GateVerdict::kFail);
    CHECK(check.first_different_step == 0);
    return check.first_different_tensor;
  };
  CHECK(first_tensor(0) == "head.weight");
  CHECK(first_tensor(1) == "head.weight");
  // The point's gradients differ from its reference, but the report has no hashes of them.
  report.points[1].parity->gradient_bits_equal = false;
  CHECK(first_tensor(1) == "gradient norm");
  report.points[1].steps[0].gradient_hashes = {{"embed.weight", "ff"}, {"head.weight", "dd"}};
  CHECK(first_tensor(1) == "embed.weight");
}

// Losses can still be compared, so only the tier that compares bits is undecided.
TEST_CASE("bits are not compared if the point's plan does not preserve them") {
  Report report = report_of({trained_point("none"), trained_point("full")});
  PointRecord& rounding = report.points[1];
  rounding.parity->parameter_hash_equal = false;
  GateSettings only_full = tier(LossTier::kBitwise);
  only_full.policies = {"full"};
  const auto check = [&] { return check_of(gate(report, report, only_full), "loss_bitwise"); };
  CHECK(check().verdict == GateVerdict::kFail);
  rounding.effect.emplace().inexact_store = "compress8";
  CHECK(check().verdict == GateVerdict::kInconclusive);
  CHECK(check().reason ==
        "the plan keeps values in compress8, which does not preserve all bits; use --loss envelope "
        "or --loss equivalence");
  only_full = {};
  only_full.max_loss_difference = 0.0;
  only_full.policies = {"full"};
  CHECK(check_of(gate(report, report, only_full), "loss_difference").verdict == GateVerdict::kPass);
}

TEST_CASE("a loss that is not finite fails in every tier, whether or not bits are equal") {
  const float nan = std::nanf("");
  Report report = report_of({trained_point("full", {5, nan, 3, 2})});
  for (const LossTier each : {LossTier::kBitwise, LossTier::kEnvelope, LossTier::kEquivalence}) {
    const GateRecord record = gate(report, report_of({report.points[0]}), tier(each));
    CHECK(record.verdict == GateVerdict::kFail);
    CHECK(check_of(record, "loss_finite").first_different_step == 1);
  }
}

// The candidate's own run passes each tier, but one of its repeats fails.
TEST_CASE("a repeat of the candidate without finite losses and gradients fails every tier") {
  const auto four_runs = [](const Steps& last) {
    Report report = report_of({trained_point("full")});
    const std::string key = point_key(report.points[0].identity);
    for (const Steps& steps : {steps_of(kLosses), steps_of(kLosses), last}) {
      report.repeats.push_back({key, "full", PointStatus::kOk, "", steps});
    }
    return report;
  };
  const Report reference = four_runs(steps_of(kLosses));
  Steps without_gradients = steps_of(kLosses);
  without_gradients[2].gradient_norm_bits = "0x0000000000000000";
  GateSettings threshold;
  threshold.max_loss_difference = 0.5;
  for (const GateSettings& settings : {tier(LossTier::kBitwise), tier(LossTier::kEnvelope),
                                       tier(LossTier::kEquivalence), threshold}) {
    CHECK(gate(four_runs(steps_of(kLosses)), reference, settings).verdict == GateVerdict::kPass);
    const GateRecord broken =
        gate(four_runs(steps_of({5, 4, std::nanf(""), 2})), reference, settings);
    CHECK(broken.verdict == GateVerdict::kFail);
    CHECK(check_of(broken, "loss_finite").first_different_step == 2);
    CHECK_THAT(check_of(broken, "loss_finite").reason, Catch::Contains("step 2 in repeat 3"));
    const GateRecord dead = gate(four_runs(without_gradients), reference, settings);
    CHECK(dead.verdict == GateVerdict::kFail);
    CHECK_THAT(check_of(dead, "gradients").reason, Catch::Contains("step 2 in repeat 3"));
  }
}

TEST_CASE("an unfinished repeat of the candidate fails if its loss is checked") {
  Report report = report_of({trained_point("full")});
  const Report reference = report;
  const std::string key = point_key(report.points[0].identity);
  report.repeats = {{key, "full", PointStatus::kTimeout, "60 s", {}}};
  const GateRecord record = gate(report, reference, tier(LossTier::kBitwise));
  CHECK(record.verdict == GateVerdict::kFail);
  CHECK(check_of(record, "status").reason == "a repeat ended timeout: 60 s");
  CHECK(check_of(record, "loss_bitwise").verdict == GateVerdict::kPass);
  GateSettings peak;
  peak.max_peak = Bytes{std::int64_t{1} << 30};
  CHECK(gate(report, reference, peak).verdict == GateVerdict::kPass);
}

TEST_CASE("the reason mentions steps that the reference has not run") {
  const Report reference = report_of({trained_point("full")});
  const auto reason = [&](const std::vector<float>& losses) {
    const GateRecord record =
        gate(report_of({trained_point("full", losses)}), reference, tier(LossTier::kBitwise));
    CHECK(record.verdict == GateVerdict::kPass);
    return check_of(record, "loss_bitwise").reason;
  };
  CHECK(reason(kLosses) == "equal bits over 4 steps");
  CHECK(reason({5, 4, 3, 2, 1}) ==
        "equal bits over 4 steps; the candidate's last step has no counterpart");
  CHECK(reason({5, 4, 3, 2, 9, 9}) ==
        "equal bits over 4 steps; the candidate's last 2 steps have no counterpart");
}

TEST_CASE("gradients that are all zero do not count as equal") {
  Report report = report_of({trained_point("full")});
  for (StepRecord& step : report.points[0].steps) step.gradient_norm_bits = "0x0000000000000000";
  const GateRecord record = gate(report, report_of({report.points[0]}), tier(LossTier::kBitwise));
  CHECK(check_of(record, "loss_bitwise").verdict == GateVerdict::kPass);
  CHECK(check_of(record, "gradients").verdict == GateVerdict::kFail);
  CHECK(record.verdict == GateVerdict::kFail);

  Report unproven = report_of({trained_point("full")});
  unproven.points[0].parity->every_parameter_has_gradient = false;
  unproven.points[0].parity->first_parameter_without_gradient = "head.weight";
  const GateRecord none =
      gate(unproven, report_of({trained_point("full")}), tier(LossTier::kBitwise));
  CHECK(none.verdict == GateVerdict::kInconclusive);
  CHECK_THAT(check_of(none, "gradients").reason, Catch::Contains("head.weight"));
}

TEST_CASE("points of a single report are compared with the report's reference point") {
  const Report report =
      report_of({trained_point("none"), trained_point("full"), trained_point("attn_only")});
  const GateRecord record =
      gate_report(report, "a.json", &report, "a.json", tier(LossTier::kBitwise));
  REQUIRE(record.points.size() == 2);
  CHECK(record.points[0].policy == "full");
  CHECK(record.points[0].reference_policy == "none");
  CHECK(record.verdict == GateVerdict::kPass);
  // With another report as reference, each point is compared with its own policy there, unless a
  // reference policy is requested.
  CHECK(gate(report, report_of({trained_point("full"), trained_point("none")}),
             tier(LossTier::kBitwise))
            .points[1]
            .reference_policy == "full");
  GateSettings against_none = tier(LossTier::kBitwise);
  against_none.reference_policy = "none";
  CHECK(gate(report, report, against_none).points[0].reference_policy == "none");
}

TEST_CASE("without a reference of the same training the gate is inconclusive") {
  PointRecord other = trained_point("full");
  other.identity.seed = 2;
  const GateRecord record =
      gate(report_of({trained_point("full")}), report_of({other}), tier(LossTier::kBitwise));
  CHECK(record.verdict == GateVerdict::kInconclusive);
  CHECK(gate(report_of({}), report_of({}), tier(LossTier::kBitwise)).verdict ==
        GateVerdict::kInconclusive);
}

TEST_CASE(
    "a comparison of bits from different environments is inconclusive, even if the bits differ") {
  Report elsewhere = report_of({trained_point("full", {5, 4, 3, 1})});
  elsewhere.provenance.environment.libtorch_version = "2.12.0";
  const Report reference = report_of({trained_point("full")});
  CHECK(gate(elsewhere, reference, tier(LossTier::kBitwise)).verdict == GateVerdict::kInconclusive);
  GateSettings mixed = tier(LossTier::kBitwise);
  mixed.allow_mixed = true;
  CHECK(gate(elsewhere, reference, mixed).verdict == GateVerdict::kFail);
  // Mean losses of different devices can be equivalent. A plain threshold in the same gate still
  // depends on the environment.
  GateSettings both = tier(LossTier::kEquivalence);
  both.max_loss_difference = 0.5;
  CHECK(check_of(gate(elsewhere, reference, both), "loss_difference").verdict ==
        GateVerdict::kInconclusive);
}

// A merged report's own environment holds only the members that its parts have in common. For
// example, if the parts ran with different LibTorch versions, the merged report has no LibTorch
// version.
TEST_CASE("points of a merged report are compared with a reference in their environment") {
  const auto merged = [](const std::string& of_none, const std::string& of_full) {
    Report report = report_of(
        {trained_point("none", {5, 4, 3, 1}), trained_point("none"), trained_point("full")});
    const std::vector<std::string> versions = {"2.10.0", of_none, of_full};
    for (std::size_t point = 0; point < versions.size(); ++point) {
      report.sources.push_back({report.provenance, {point}});
      report.sources.back().provenance.environment.libtorch_version = versions[point];
    }
    return report;
  };
  const auto check = [&](const Report& report) {
    GateSettings settings = tier(LossTier::kBitwise);
    settings.policies = {"full"};
    return gate(report, report, settings);
  };
  CHECK(check(merged("2.11.0", "2.11.0")).verdict == GateVerdict::kPass);
  const GateRecord apart = check(merged("2.12.0", "2.11.0"));
  CHECK(apart.verdict == GateVerdict::kInconclusive);
  CHECK(apart.environment_differences.size() == 1);
}

TEST_CASE("repeats of the reference are matched by the key of their point") {
  Report reference = report_of({trained_point("none")});
  const std::string key = point_key(reference.points[0].identity);
  for (const float noise : {0.0F, 0.125F, 0.25F}) {
    reference.repeats.push_back(
        {key, "none", PointStatus::kOk, "", steps_of({5, 4, 3, 2 + noise})});
  }
  reference.repeats.push_back({key, "none", PointStatus::kOom, "", steps_of({9, 9, 9, 9})});
  GateSettings settings = tier(LossTier::kEnvelope);
  settings.reference_policy = "none";
  const GateRecord record =
      gate(report_of({trained_point("full", {5, 4, 3, 2.5F})}), reference, settings);
  CHECK(record.verdict == GateVerdict::kPass);
  CHECK(check_of(record, "loss_envelope").noise->reference_runs == 4);
  CHECK(report_to_json(report_from_json(report_to_json(reference))) == report_to_json(reference));
}

TEST_CASE("points that only the reference has are listed and make the gate inconclusive") {
  const Report reference = report_of({trained_point("none"), trained_point("full"),
                                      trained_point("attn_only"), sample_oom("save_mm")});
  GateSettings settings = tier(LossTier::kBitwise);
  const GateRecord some = gate(report_of({trained_point("none")}), reference, settings);
  CHECK(some.verdict == GateVerdict::kInconclusive);
  REQUIRE(some.points.size() == 3);
  CHECK(some.points[0].verdict == GateVerdict::kPass);
  CHECK(some.points[1].policy == "full");
  CHECK(some.points[2].policy == "attn_only");
  CHECK(some.points[2].checks.at(0).check == "missing");
  CHECK(gate(reference, reference, settings).points.size() == 3);
  settings.policies = {"none"};
  CHECK(gate(report_of({trained_point("none")}), reference, settings).verdict ==
        GateVerdict::kPass);
  // If the reference report has only policy `none`, all points are compared with it. Another
  // schedule of policy `full` is a separate point.
  const Report with_none = report_of({trained_point("none")});
  CHECK(gate(report_of({trained_point("full")}), with_none, tier(LossTier::kBitwise)).verdict ==
        GateVerdict::kPass);
  PointRecord other = trained_point("full");
  other.identity.schedule = Schedule::kWholeRegion;
  CHECK(gate(report_of({trained_point("full")}), report_of({trained_point("full"), other}),
             tier(LossTier::kBitwise))
            .points.size() == 2);
}

TEST_CASE("a requested policy that only the reference has is reported as missing") {
  const Report reference = report_of({trained_point("none"), trained_point("full")});
  GateSettings settings;
  settings.max_peak = Bytes{std::int64_t{1} << 30};
  const Report report = report_of({trained_point("none")});
  // the report has every requested point
  CHECK(gate(report, reference, settings).points.size() == 1);
  settings.policies = {"none", "full"};
  const GateRecord record = gate(report, reference, settings);
  CHECK(record.verdict == GateVerdict::kInconclusive);
  REQUIRE(record.points.size() == 2);
  CHECK(record.points[1].policy == "full");
  CHECK(record.points[1].checks.at(0).check == "missing");
  settings.loss = LossTier::kBitwise;
  settings.reference_policy = "none";
  CHECK(gate(report, reference, settings).points.size() == 2);
}

TEST_CASE("the JSON of a gate record fits its schema, reads back and equals the approved file",
          "[golden]") {
  Report reference = report_of({trained_point("none")});
  const std::string key = point_key(reference.points[0].identity);
  for (int run = 0; run < 3; ++run) {
    reference.repeats.push_back({key, "none", PointStatus::kOk, "", steps_of(kLosses)});
  }
  GateSettings settings = tier(LossTier::kBitwise);
  settings.reference_policy = "none";
  settings.max_peak = Bytes{std::int64_t{99} << 20};
  settings.expectations = {{"attention_forward", 80}};
  const Report report = report_of(
      {trained_point("full"), trained_point("attn_only", {5, 4, 3, 2.5F}), sample_oom("save_mm")});
  const GateRecord record = gate(report, reference, settings);
  const Json json = gate_to_json(record);
  CHECK(validate(json).value_or("") == "");
  CHECK(gate_to_json(gate_from_json(json)) == json);
  testing::check_golden("gate/gate.json", json.dump(2) + "\n");
  testing::check_golden("gate/gate.txt", render_gate(record, TableFormat::kText));
  testing::check_golden("gate/gate.md", render_gate(record, TableFormat::kMarkdown));
}

}  // namespace rematch
