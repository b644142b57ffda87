#include "reports/compare/fail_on.h"

#include "tests/reports/compare/sample_comparison.h"
#include "tests/support/catch.h"

namespace rematch {

using testing::base_report;
using testing::compare;
using testing::kBase;
using testing::slower_report;
using testing::timed_point;

TEST_CASE("a comparison lists the conditions of --fail-on that its verdicts meet") {
  CompareSettings settings;
  settings.fail_on = {FailOn::kSlower, FailOn::kPeak,    FailOn::kCounts,
                      FailOn::kLoss,   FailOn::kMissing, FailOn::kFailed};
  CHECK(compare(base_report(), slower_report(), settings).failed_on ==
        std::vector<std::string>{"slower", "peak", "counts", "loss", "missing", "failed"});
  CHECK(compare(base_report(), base_report(), settings).failed_on.empty());
  // With base and candidate swapped, the candidate is faster, has lower peaks and has no failed
  // point.
  CHECK(compare(slower_report(), base_report(), settings).failed_on ==
        std::vector<std::string>{"counts", "loss", "missing"});
}

TEST_CASE("a condition on a metric that was not compared does not pass") {
  CompareSettings settings;
  const auto open = [&](FailOn what, const PointRecord& base, const PointRecord& candidate) {
    settings.fail_on = {what};
    const CompareRecord record = compare(base, candidate, settings);
    CHECK(record.failed_on.empty());
    const std::vector<std::string> lines = undecided(record);
    return lines.empty() ? "" : lines.at(0);
  };
  const PointRecord full = timed_point("full", kBase);
  for (const FailOn what : {FailOn::kSlower, FailOn::kPeak, FailOn::kCounts, FailOn::kLoss}) {
    CHECK(open(what, full, full).empty());
    CHECK(open(what, full, timed_point("none", kBase)) ==
          std::string(to_string(what)) + " (no point finished in both reports)");
  }
  struct Case {
    FailOn what;
    const char* metric;
    void (*forget)(PointRecord&);
  };
  const Case rows[] = {
      {FailOn::kSlower, "step time", [](PointRecord& point) { point.time.reset(); }},
      {FailOn::kPeak, "peak allocated",
       [](PointRecord& point) { point.memory->peak_allocated.reset(); }},
      {FailOn::kCounts, "executed ops", [](PointRecord& point) { point.counts.reset(); }},
      {FailOn::kCounts, "kernel count", [](PointRecord& point) { point.kernels.reset(); }},
      {FailOn::kLoss, "loss", [](PointRecord& point) { point.steps.clear(); }}};
  for (const Case& row : rows) {
    CAPTURE(row.metric);
    const std::string line =
        std::string(to_string(row.what)) + " (" + row.metric + " was not measured";
    PointRecord bare = full;
    row.forget(bare);
    CHECK(open(row.what, full, bare) == line + " in the candidate for full on_demand)");
    CHECK(open(row.what, bare, full) == line + " in the base for full on_demand)");
  }
  PointRecord bare = full;
  bare.time.reset();
  CHECK(open(FailOn::kSlower, bare, bare) ==
        "slower (step time was measured on neither side for full on_demand)");
  CHECK_THAT(open(FailOn::kSlower, timed_point("full", {100}), timed_point("full", {200})),
             Catch::Contains("only one round on one side"));
  // A point on a CPU has no kernel records, but its op counts can be judged.
  bare = full;
  bare.kernels.reset();
  CHECK(open(FailOn::kCounts, bare, bare).empty());
}

// The base's rounds take 10 ms, the candidate's 7 to 48 ms. The interval of the ratio is too wide
// to decide.
TEST_CASE("a time does not pass if it is too noisy to decide whether it is slower") {
  CompareSettings settings;
  settings.fail_on = {FailOn::kSlower};
  const PointRecord base = timed_point("full", kBase);
  const auto open = [&](const std::vector<double>& rounds) {
    const CompareRecord record = compare(base, timed_point("full", rounds), settings);
    CHECK(record.failed_on.empty());
    const std::vector<std::string> lines = undecided(record);
    return lines.empty() ? "" : lines.at(0);
  };
  CHECK_THAT(open({7000, 48000, 18000, 18000}),
             Catch::StartsWith("slower (step time ratio 1.8") &&
                 Catch::EndsWith("] is within noise for full on_demand)"));
  // The whole interval is above 1, but chance alone may cause such a difference.
  CHECK_THAT(open({10400, 17000}), Catch::Contains("is within noise"));
  // The candidate may be faster, but it is certainly not slower.
  const PointRecord faster = timed_point("full", {7900, 9100, 8200, 8800});
  CHECK(testing::metric_of(compare(base, faster), Metric::kStepTime).verdict ==
        CompareVerdict::kUnsure);
  CHECK(open({7900, 9100, 8200, 8800}).empty());
  CHECK(open(testing::scaled(0.9)).empty());
  settings.floors[Metric::kStepTime] = {9, 0};
  CHECK(open({7000, 48000, 18000, 18000}).empty());
}

TEST_CASE("conditions on a point are undecided if only the base finished the point") {
  using testing::report_of;
  const Report base = report_of({timed_point("none", kBase), timed_point("full", kBase)});
  const auto open = [&](const Report& left, const Report& right, FailOn what) {
    CompareSettings settings;
    settings.fail_on = {what};
    const CompareRecord record = compare(left, right, settings);
    CHECK(record.failed_on.empty());
    const std::vector<std::string> lines = undecided(record);
    return lines.empty() ? "" : lines.at(0);
  };
  Report without = base;
  without.points.pop_back();
  Report failed = base;
  failed.points[1].status = PointStatus::kOom;
  for (const FailOn what : {FailOn::kSlower, FailOn::kPeak, FailOn::kCounts, FailOn::kLoss}) {
    const std::string name(to_string(what));
    CHECK(open(base, without, what) == name + " (full on_demand is not in the candidate)");
    CHECK(open(base, failed, what) == name + " (full on_demand ended oom in the candidate)");
    CHECK(open(without, base, what).empty());
    CHECK(open(failed, base, what).empty());
  }
}

TEST_CASE(
    "a point that failed only in the candidate is found; conditions on empty reports are "
    "undecided") {
  using testing::report_of;
  CompareSettings settings;
  settings.fail_on = {FailOn::kFailed};
  PointRecord failed = timed_point("full", kBase);
  failed.status = PointStatus::kCrash;
  const Report base = report_of({timed_point("none", kBase)});
  CHECK(compare(base, report_of({base.points[0], failed}), settings).failed_on ==
        std::vector<std::string>{"failed"});
  settings.fail_on = {FailOn::kMissing, FailOn::kFailed};
  CHECK(undecided(compare(report_of({}), report_of({}), settings)) ==
        std::vector<std::string>{"missing (the base has no points)",
                                 "failed (the candidate has no points)"});
  CHECK(undecided(compare(base, base, settings)).empty());
  // A comparison without a common point is undecided, even if no condition is requested.
  CHECK(undecided(compare(base, report_of({}))) ==
        std::vector<std::string>{"no point finished in both reports"});
  CHECK(undecided(compare(base, base)).empty());
  // Both reports have the point, but no figures for it.
  PointRecord bare = timed_point("full", kBase);
  bare.time.reset();
  CompareSettings times_alone;
  times_alone.metrics = {Metric::kStepTime};
  CHECK(undecided(compare(bare, bare, times_alone)) ==
        std::vector<std::string>{"no metric was measured in both reports for any point"});
}

}  // namespace rematch
