#include "reports/gate/limit_checks.h"

#include "tests/reports/gate/sample_arms.h"
#include "tests/reports/sample_report.h"
#include "tests/support/catch.h"

namespace rematch {

using testing::gate;
using testing::report_of;
using testing::trained_point;

// sample_point has a peak of 100 MiB, and in each of 10 steps 64 matmuls in forward and 128 in
// backward.
TEST_CASE("limits on peak, ops and time are checked without a loss tier") {
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

TEST_CASE("zero executions of an unknown op do not prove its absence") {
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
  // All these names are known: the first from the op table, the second from another point, and the
  // last as a class.
  CHECK(expect("aten::_flash_attention_forward", 0).verdict == GateVerdict::kPass);
  CHECK(expect("mine::op", 0).verdict == GateVerdict::kPass);
  CHECK(expect("recompute.aten::mm", 0).verdict == GateVerdict::kPass);
  CHECK(expect("collective", 0).verdict == GateVerdict::kPass);
}

// Each forward of 10 steps has 16 all-reduces and each recompute has 8.
TEST_CASE(
    "collectives are checked by kind, and the peak check names the rank with the highest peak") {
  PointRecord on_ranks = testing::sample_on_ranks("full", 8);
  on_ranks.steps.pop_back();  // the last step's loss is not a number
  on_ranks.counts->by_op[0]["_c10d_functional::all_reduce"] = 160;
  on_ranks.counts->by_op[0]["_c10d_functional::wait_tensor"] = 160;
  on_ranks.counts->by_op[1]["_c10d_functional::all_reduce"] = 80;
  const auto check = [](const PointRecord& point, const GateSettings& settings) {
    return gate_report(report_of({point}), "report.json", nullptr, "", settings)
        .points.at(0)
        .checks.at(0);
  };
  const auto expect = [&](const PointRecord& point, const char* name, std::int64_t executed) {
    GateSettings settings;
    settings.expectations = {{name, executed}};
    return check(point, settings).verdict;
  };
  CHECK(expect(on_ranks, "all_reduce", 240) == GateVerdict::kPass);
  CHECK(expect(on_ranks, "recompute.all_reduce", 80) == GateVerdict::kPass);
  CHECK(expect(on_ranks, "recompute.all_reduce", 0) == GateVerdict::kFail);
  CHECK(expect(on_ranks, "all_gather", 0) == GateVerdict::kPass);
  CHECK(expect(trained_point("none"), "all_gather", 0) == GateVerdict::kInconclusive);
  GateSettings settings;
  settings.max_peak = Bytes{1};
  CHECK_THAT(check(on_ranks, settings).reason,
             Catch::Contains("MiB on rank 1, the highest; allowed: 1 B"));
}

TEST_CASE("collectives that the plan does not predict fail any gate") {
  PointRecord on_ranks = testing::sample_on_ranks("full", 8);
  CHECK_FALSE(check_prediction(on_ranks));
  on_ranks.ranks->collectives[1]["all_reduce"] += 10;
  REQUIRE(check_prediction(on_ranks));
  CHECK(check_prediction(on_ranks)->verdict == GateVerdict::kFail);
  CHECK(check_prediction(on_ranks)->reason ==
        "issued 90 all_reduce in recompute; the plan predicts 80");
}

TEST_CASE("the slowdown check decides only if the whole interval is on one side of the limit") {
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
  // The ratio is 12 ms / 10 ms = 1.2. With so few rounds, its interval is a few percent wide.
  CHECK(verdict(1.5) == GateVerdict::kPass);
  CHECK(verdict(1.2) == GateVerdict::kInconclusive);
  CHECK(verdict(1.05) == GateVerdict::kFail);
}

// A point of a run whose reference was policy `none`.
PointRecord timed(const std::string& policy, const std::vector<std::int64_t>& rounds_us) {
  PointRecord point = trained_point(policy);
  point.time->ratio = StepRatioRecord{"none", 1, std::nullopt, "same"};
  point.time->samples.clear();
  for (const std::int64_t round : rounds_us) {
    point.time->samples.push_back({std::chrono::microseconds(round)});
  }
  return point;
}

// Every second round is slow in both policies. If one run timed both, the cause was the same, so
// rounds can be compared in pairs.
TEST_CASE("rounds of two arms are paired only within one report") {
  const Report full = report_of({timed("full", {11000, 22000, 11000, 22000, 11000})});
  const PointRecord none = timed("none", {10000, 20000, 10000, 20000, 10000});
  const Report both = report_of({none, full.points[0]});
  GateSettings settings;
  settings.max_slowdown = 1.2;
  CHECK(gate(both, both, settings).verdict == GateVerdict::kPass);
  CHECK(gate(full, report_of({none}), settings).verdict == GateVerdict::kInconclusive);
}

// The points of one report may have been timed by different starts of the command, for example by
// two workers or in two reports that were merged. Rounds of such points are not compared in pairs,
// because a slow round of one point says nothing about the other point.
TEST_CASE(
    "rounds of two arms are paired only if both arms were timed after the same start of the "
    "command") {
  const auto verdict = [](const std::string& none_start, const std::string& full_start,
                          std::size_t num_sources) {
    Report report = report_of({timed("none", {10000, 20000, 10000, 20000, 10000}),
                               timed("full", {11000, 22000, 11000, 22000, 11000})});
    for (std::size_t point = 0; point < 2; ++point) {
      const std::string& start = point == 0 ? none_start : full_start;
      if (!start.empty()) report.points[point].time->starts.assign(5, start);
    }
    for (std::size_t source = 0; source < num_sources; ++source) {
      report.sources.push_back({report.provenance, {source}});
    }
    GateSettings settings;
    settings.max_slowdown = 1.2;
    return gate(report, report, settings).verdict;
  };
  CHECK(verdict("a", "a", 0) == GateVerdict::kPass);
  CHECK(verdict("a", "b", 0) == GateVerdict::kInconclusive);
  CHECK(verdict("", "", 0) ==
        GateVerdict::kPass);  // reports of earlier builds do not contain `starts`
  CHECK(verdict("a", "a", 2) == GateVerdict::kPass);
  CHECK(verdict("a", "b", 2) == GateVerdict::kInconclusive);
  CHECK(verdict("", "", 2) == GateVerdict::kInconclusive);
}

// If the round without a time were dropped, each later round would be paired with an earlier round
// of the reference.
TEST_CASE("rounds of alternating arms are not paired if a round has no time") {
  const PointRecord none = timed("none", {10000, 20000, 10000, 20000, 10000});
  const auto ratio = [&](const std::vector<std::int64_t>& rounds) {
    GateSettings settings;
    settings.max_slowdown = 1.5;
    const Report report = report_of({none, timed("full", rounds)});
    const CheckRecord check = gate(report, report, settings).points.at(0).checks.at(0);
    return check.measured.value_or(0);
  };
  CHECK(ratio({11000, 22000, 11000, 22000, 11000}) == Approx(1.1));
  CHECK(ratio({11000, 0, 11000, 22000, 11000}) == Approx(1.1));
}

}  // namespace rematch
