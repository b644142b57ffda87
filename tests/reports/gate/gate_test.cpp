#include "reports/gate/gate.h"

#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <stdexcept>

#include "policies/trace/json.h"
#include "reports/gate/loss_checks.h"
#include "reports/record/record_json.h"
#include "reports/render/gate_table.h"
#include "reports/schema/validate.h"
#include "tests/reports/sample_report.h"
#include "tests/support/catch.h"
#include "tests/support/golden.h"

namespace rematch {
namespace {

using testing::sample_oom;
using testing::sample_point;
using testing::sample_provenance;

std::string bits_of(float value) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "0x%08x", bits);
  return text.data();
}

Steps steps_of(const std::vector<float>& losses) {
  Steps steps;
  for (const float loss : losses) {
    StepRecord step;
    if (std::isfinite(loss)) step.loss = loss;
    step.loss_bits = bits_of(loss);
    step.gradient_norm_bits = "0x3ff0000000000000";
    step.parameter_hash = "aa";
    step.generator_hash = "bb";
    steps.push_back(step);
  }
  return steps;
}

LossArm arm_of(const std::vector<std::vector<float>>& runs) {
  LossArm arm;
  arm.policy = "none";
  for (const std::vector<float>& losses : runs) arm.runs.push_back(steps_of(losses));
  return arm;
}

const std::vector<float> kLosses = {5, 4, 3, 2};

PointRecord trained_point(const std::string& policy, const std::vector<float>& losses = kLosses) {
  PointRecord point = sample_point(policy);
  point.steps = steps_of(losses);
  return point;
}

Report report_of(const std::vector<PointRecord>& points) {
  return Report{sample_provenance(), points, {}, {}};
}

GateRecord gate(const Report& report, const Report& reference, const GateSettings& settings) {
  return gate_report(report, "report.json", &reference, "reference.json", settings);
}

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

TEST_CASE("T0 passes equal bits and names the first step and tensor that differ") {
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

// A report holds the gradients' hashes at its reference, and at points whose gradients differ from
// it; full has none's, since it has its bits.
TEST_CASE("T0 between two reports names the gradient that differs") {
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
  report.points[1].parity->gradient_bits_equal = false;  // its own are not known then
  CHECK(first_tensor(1) == "gradient norm");
  report.points[1].steps[0].gradient_hashes = {{"embed.weight", "ff"}, {"head.weight", "dd"}};
  CHECK(first_tensor(1) == "embed.weight");
}

TEST_CASE("T0 is refused where the reference does not repeat itself") {
  const LossArm reference = arm_of({kLosses, {5, 4, 3, 2.5F}});
  const CheckRecord check = check_bitwise(arm_of({{5, 4, 3, 1}}), reference);
  CHECK(check.verdict == GateVerdict::kInconclusive);
  CHECK_THAT(check.reason, Catch::StartsWith("refused: run 2 of the reference"));
  LossArm once = arm_of({kLosses});
  once.deterministic = false;
  CHECK(check_bitwise(arm_of({{5, 4, 3, 1}}), once).verdict == GateVerdict::kInconclusive);
}

TEST_CASE("T0 does not pass what was not recorded or not run to the end") {
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

TEST_CASE("T0 wants the reference's bits of every run of the candidate") {
  const CheckRecord check =
      check_bitwise(arm_of({kLosses, kLosses, {5, 4, 3, 1}}), arm_of({kLosses}));
  CHECK(check.verdict == GateVerdict::kFail);
  CHECK(check.first_different_step == 3);
  CHECK(check.reason == "first differs at step 3 in loss in repeat 2");
}

// The reference's runs differ by 0.25 at most, so the envelope is 0.5 to the nearest of them.
TEST_CASE("T1 allows twice what three runs of the reference differ by") {
  const LossArm reference = arm_of({{5, 4}, {5, 4.25F}, {5, 4.125F}});
  CHECK(check_envelope(arm_of({{5, 4.75F}}), reference).verdict == GateVerdict::kPass);
  const CheckRecord outside = check_envelope(arm_of({{5, 4.8125F}}), reference);
  CHECK(outside.verdict == GateVerdict::kFail);
  CHECK(outside.measured == 0.5625);
  CHECK(outside.limit == 0.5);
  CHECK(outside.noise->largest_difference == 0.25);
  CHECK(check_envelope(arm_of({{5, 4}}), arm_of({{5, 4}, {5, 4}})).verdict ==
        GateVerdict::kInconclusive);
  CHECK(
      outside.reason ==
      "differs by 0.5625 at most from the nearest of 3 reference runs; allowed is 0.5, twice what "
      "two of them differ by");
  CHECK_THAT(outside.noise->detects, Catch::EndsWith("fails at most 0.5 % of the time"));
  CHECK_THAT(
      check_envelope(arm_of({{5, 4}}), arm_of({{5, 4}, {5, 4.25F}, {5, 4}, {5, 4}})).noise->detects,
      Catch::EndsWith("fails at most 0.3 % of the time"));
  // A deterministic reference leaves no room.
  CHECK(check_envelope(arm_of({{5, 4.0001F}}), arm_of({{5, 4}, {5, 4}, {5, 4}})).verdict ==
        GateVerdict::kFail);
}

// Runs differ from their mean by 0.01; the mean over the last two of four steps counts.
TEST_CASE("T2 tests mean losses over the last steps, with four runs on both sides") {
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

// Steps of 1, 2 and 3 have a mean of 2.5 over the last two; nothing varies.
TEST_CASE("T2 knows that nothing is left to chance where no run varies") {
  const LossArm reference = arm_of({{1, 2, 3}, {1, 2, 3}, {1, 2, 3}, {1, 2, 3}});
  const LossArm other = arm_of({{1, 2, 4}, {1, 2, 4}, {1, 2, 4}, {1, 2, 4}});
  const CheckRecord equal = check_equivalence(reference, reference, std::nullopt, 2);
  CHECK(equal.verdict == GateVerdict::kPass);
  CHECK(equal.reason == "mean losses differ by 0 and do not vary; allowed is 0");
  CHECK_THAT(equal.noise->detects, Catch::StartsWith("any difference of the mean losses"));
  CHECK(check_equivalence(other, reference, std::nullopt, 2).verdict == GateVerdict::kFail);
  CHECK(check_equivalence(other, reference, 0.5, 2).verdict == GateVerdict::kPass);
  CHECK(check_equivalence(other, reference, 0.25, 2).verdict == GateVerdict::kFail);
}

TEST_CASE("T2 refuses a window that is longer than the runs") {
  const LossArm arm = arm_of({{1, 2, 3}, {1, 2, 3}, {1, 2, 3}, {1, 2, 3}});
  const CheckRecord check = check_equivalence(arm, arm, std::nullopt, 4);
  CHECK(check.verdict == GateVerdict::kInconclusive);
  CHECK(check.reason == "a window of 4 steps is out of range; allowed are 1 to 3");
  CHECK(check_equivalence(arm, arm, std::nullopt, 3).verdict == GateVerdict::kPass);
}

TEST_CASE("a plain threshold works alone, says so, and knows its noise if there is some") {
  const CheckRecord alone = check_difference(arm_of({{5, 4.5F}}), arm_of({{5, 4}}), 0.5);
  CHECK(alone.verdict == GateVerdict::kPass);
  CHECK_THAT(alone.reason, Catch::Contains("noise: not measured"));
  CHECK_FALSE(alone.noise->largest_difference);
  CHECK(check_difference(arm_of({{5, 4.625F}}), arm_of({{5, 4}}), 0.5).verdict ==
        GateVerdict::kFail);
  // Noise of 1 hides differences of 0.5, but not of 3.
  const LossArm noisy = arm_of({{5, 4}, {5, 5}});
  CHECK(check_difference(arm_of({{5, 4}}), noisy, 0.5).verdict == GateVerdict::kInconclusive);
  CHECK(check_difference(arm_of({{5, 7}}), noisy, 0.5).verdict == GateVerdict::kFail);
  CHECK(check_difference(arm_of({{5, 4}}), noisy, 1.5).verdict == GateVerdict::kPass);
}

TEST_CASE("a loss that is not finite fails in every tier, equal bits or not") {
  const float nan = std::nanf("");
  Report report = report_of({trained_point("full", {5, nan, 3, 2})});
  for (const LossTier each : {LossTier::kBitwise, LossTier::kEnvelope, LossTier::kEquivalence}) {
    const GateRecord record = gate(report, report_of({report.points[0]}), tier(each));
    CHECK(record.verdict == GateVerdict::kFail);
    CHECK(check_of(record, "loss_finite").first_different_step == 1);
  }
}

// The candidate itself is fine, and so is each tier's check of it; one of its repeats is not.
TEST_CASE("a repeat of the candidate that is not finite or has no gradients fails every tier") {
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

TEST_CASE("a reference whose loss is not finite decides nothing, and its record says so") {
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

TEST_CASE("within one report points are held against its reference, not against themselves") {
  const Report report =
      report_of({trained_point("none"), trained_point("full"), trained_point("attn_only")});
  const GateRecord record =
      gate_report(report, "a.json", &report, "a.json", tier(LossTier::kBitwise));
  REQUIRE(record.points.size() == 2);
  CHECK(record.points[0].policy == "full");
  CHECK(record.points[0].reference_policy == "none");
  CHECK(record.verdict == GateVerdict::kPass);
  // Another report: the same policy, or the one asked for.
  CHECK(gate(report, report_of({trained_point("full"), trained_point("none")}),
             tier(LossTier::kBitwise))
            .points[1]
            .reference_policy == "full");
  GateSettings against_none = tier(LossTier::kBitwise);
  against_none.reference_policy = "none";
  CHECK(gate(report, report, against_none).points[0].reference_policy == "none");
}

TEST_CASE("without a reference of the same training there is no verdict") {
  PointRecord other = trained_point("full");
  other.identity.seed = 2;
  const GateRecord record =
      gate(report_of({trained_point("full")}), report_of({other}), tier(LossTier::kBitwise));
  CHECK(record.verdict == GateVerdict::kInconclusive);
  CHECK(gate(report_of({}), report_of({}), tier(LossTier::kBitwise)).verdict ==
        GateVerdict::kInconclusive);
}

TEST_CASE("another environment makes bits inconclusive, never failed or passed") {
  Report elsewhere = report_of({trained_point("full", {5, 4, 3, 1})});
  elsewhere.provenance.environment.libtorch_version = "2.12.0";
  const Report reference = report_of({trained_point("full")});
  CHECK(gate(elsewhere, reference, tier(LossTier::kBitwise)).verdict == GateVerdict::kInconclusive);
  GateSettings mixed = tier(LossTier::kBitwise);
  mixed.allow_mixed = true;
  CHECK(gate(elsewhere, reference, mixed).verdict == GateVerdict::kFail);
}

TEST_CASE("repeats of the reference are found by their key") {
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

// sample_point: peak 100 MiB; 64 matmuls forward and 128 backward in each of 10 steps.
TEST_CASE("limits on peak, ops and time need no loss") {
  const Report report = report_of({trained_point("none")});
  struct Case {
    const char* name;
    GateSettings settings;
    GateVerdict verdict;
  };
  const auto expecting = [](const char* name, std::int64_t executed) {
    GateSettings settings;
    settings.expectations = {{name, executed}};
    return settings;
  };
  const auto peak = [](std::int64_t mebibytes) {
    GateSettings settings;
    settings.max_peak = Bytes{mebibytes << 20};
    return settings;
  };
  const auto slowdown = [](double limit) {
    GateSettings settings;
    settings.max_slowdown = limit;
    return settings;
  };
  const std::vector<Case> rows = {
      {"peak equal", peak(100), GateVerdict::kPass},
      {"peak over", peak(99), GateVerdict::kFail},
      {"class over all phases", expecting("matmul", 1920), GateVerdict::kPass},
      {"class in a phase", expecting("backward.matmul", 1280), GateVerdict::kPass},
      {"op", expecting("aten::mm", 1280), GateVerdict::kPass},
      {"nothing recomputed", expecting("recompute.matmul", 0), GateVerdict::kPass},
      {"wrong count", expecting("attention_forward", 600), GateVerdict::kFail},
      {"same time", slowdown(1.01), GateVerdict::kPass},
  };
  for (const Case& row : rows) {
    CAPTURE(row.name);
    CHECK(gate(report, report, row.settings).verdict == row.verdict);
  }
  PointRecord bare = trained_point("none");
  bare.counts.reset();
  bare.memory.reset();
  bare.time.reset();
  for (const Case& row : rows) {
    CAPTURE(row.name);
    CHECK(gate(report_of({bare}), report, row.settings).verdict == GateVerdict::kInconclusive);
  }
}

TEST_CASE("an op that nothing knows is not proven absent by running 0 times") {
  PointRecord own = trained_point("none");
  own.counts->by_op[0]["mine::op"] = 3;
  const auto expect = [&](const std::string& name, std::int64_t executed) {
    GateSettings settings;
    settings.expectations = {{name, executed}};
    const Report report = report_of({trained_point("full"), own});
    return gate_report(report, "report.json", nullptr, "", settings).points.at(0).checks.at(0);
  };
  const CheckRecord unknown = expect("aten::addm", 0);
  CHECK(unknown.verdict == GateVerdict::kInconclusive);
  CHECK_THAT(unknown.reason,
             Catch::Contains("'aten::addm'") && Catch::Contains("did you mean 'aten::addmm'?"));
  CHECK(expect("recompte.aten::mm", 0).verdict == GateVerdict::kInconclusive);
  CHECK(expect("aten::nosuch", 1).verdict == GateVerdict::kFail);
  // Known to the table, to another point, as a class.
  CHECK(expect("aten::_flash_attention_forward", 0).verdict == GateVerdict::kPass);
  CHECK(expect("mine::op", 0).verdict == GateVerdict::kPass);
  CHECK(expect("recompute.aten::mm", 0).verdict == GateVerdict::kPass);
  CHECK(expect("collective", 0).verdict == GateVerdict::kPass);
}

TEST_CASE("points of the reference that the report lacks are listed and leave the gate open") {
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
  // The reference's none is there for the others; another schedule of full is a point of its own.
  const Report with_none = report_of({trained_point("none")});
  CHECK(gate(report_of({trained_point("full")}), with_none, tier(LossTier::kBitwise)).verdict ==
        GateVerdict::kPass);
  PointRecord other = trained_point("full");
  other.identity.schedule = Schedule::kWholeRegion;
  CHECK(gate(report_of({trained_point("full")}), report_of({trained_point("full"), other}),
             tier(LossTier::kBitwise))
            .points.size() == 2);
}

TEST_CASE("slowdown passes or fails only with its whole interval") {
  using std::chrono::microseconds;
  PointRecord slow = trained_point("full");
  const PointRecord base = trained_point("full");
  slow.time->ratio.reset();
  slow.time->samples = {{microseconds(12000)}, {microseconds(12010)}, {microseconds(11990)}};
  GateSettings settings;
  const auto verdict = [&](double limit) {
    settings.max_slowdown = limit;
    return gate(report_of({slow}), report_of({base}), settings).verdict;
  };
  // 12 ms over 10, known to a few percent: two blocks say little.
  CHECK(verdict(1.5) == GateVerdict::kPass);
  CHECK(verdict(1.2) == GateVerdict::kInconclusive);
  CHECK(verdict(1.05) == GateVerdict::kFail);
}

TEST_CASE("a gate record's JSON fits its schema, reads back and is the approved one", "[golden]") {
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
