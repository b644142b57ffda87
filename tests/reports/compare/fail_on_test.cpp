#include "reports/compare/fail_on.h"

#include "tests/reports/compare/sample_comparison.h"
#include "tests/support/catch.h"

namespace rematch {

using testing::base_report;
using testing::compare;
using testing::kBase;
using testing::slower_report;
using testing::timed_point;

TEST_CASE("what to fail on is found in the verdicts") {
  CompareSettings settings;
  settings.fail_on = {FailOn::kSlower, FailOn::kPeak,    FailOn::kCounts,
                      FailOn::kLoss,   FailOn::kMissing, FailOn::kFailed};
  CHECK(compare(base_report(), slower_report(), settings).failed_on ==
        std::vector<std::string>{"slower", "peak", "counts", "loss", "missing", "failed"});
  CHECK(compare(base_report(), base_report(), settings).failed_on.empty());
  // The other way round only what changed in either direction remains.
  CHECK(compare(slower_report(), base_report(), settings).failed_on ==
        std::vector<std::string>{"counts", "loss", "missing"});
}

TEST_CASE("what was not compared is not passed") {
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
          std::string(to_string(what)) + " (no point is in both reports and finished in both)");
  }
  struct Case {
    FailOn what;
    const char* metric;
    void (*forget)(PointRecord&);
  };
  const Case rows[] = {
      {FailOn::kSlower, "step_time", [](PointRecord& point) { point.time.reset(); }},
      {FailOn::kPeak, "peak_allocated",
       [](PointRecord& point) { point.memory->peak_allocated.reset(); }},
      {FailOn::kCounts, "executed_ops", [](PointRecord& point) { point.counts.reset(); }},
      {FailOn::kCounts, "kernel_count", [](PointRecord& point) { point.kernels.reset(); }},
      {FailOn::kLoss, "loss", [](PointRecord& point) { point.steps.clear(); }}};
  for (const Case& row : rows) {
    CAPTURE(row.metric);
    const std::string line = std::string(to_string(row.what)) + " (" + row.metric + " is not known";
    PointRecord bare = full;
    row.forget(bare);
    CHECK(open(row.what, full, bare) == line + " in the candidate for full on_demand)");
    CHECK(open(row.what, bare, full) == line + " in the base for full on_demand)");
  }
  PointRecord bare = full;
  bare.time.reset();
  CHECK(open(FailOn::kSlower, bare, bare) ==
        "slower (step_time is known on neither side for full on_demand)");
  CHECK_THAT(open(FailOn::kSlower, timed_point("full", {100}), timed_point("full", {200})),
             Catch::Contains("one block on a side"));
  // No kernels on a CPU is no obstacle while ops are counted.
  bare = full;
  bare.kernels.reset();
  CHECK(open(FailOn::kCounts, bare, bare).empty());
}

}  // namespace rematch
