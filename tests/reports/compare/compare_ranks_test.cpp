// Tests comparisons of points that ran on several ranks: collectives, their bytes and each rank's
// peak.
#include "reports/compare/metrics.h"
#include "reports/render/tables/compare_table.h"
#include "tests/reports/compare/sample_comparison.h"
#include "tests/reports/sample_report.h"
#include "tests/support/catch.h"
#include "tests/support/golden.h"

namespace rematch {
namespace {

using testing::at;
using testing::compare;
using testing::kMiB;
using testing::metric_of;
using testing::report_of;
using testing::sample_on_ranks;
using testing::sample_point;

// The sample's last step has a loss that is not a number, so it is dropped.
PointRecord on_ranks(const std::string& policy, std::int64_t recomputed) {
  PointRecord point = sample_on_ranks(policy, recomputed);
  point.steps.pop_back();
  return point;
}

// A step has 16 collectives in forward, 15 in backward and 1 after backward. Recompute adds 8. Each
// collective has 1 MiB.
TEST_CASE(
    "the comparison lists collectives and their bytes per step, and explains changes by phase and "
    "kind") {
  const CompareRecord record = compare(on_ranks("full", 0), on_ranks("full", 8));
  const MetricRecord& issued = metric_of(record, Metric::kCollectives);
  CHECK(issued.base == 32);
  CHECK(issued.candidate == 40);
  CHECK(issued.verdict == CompareVerdict::kHigher);
  const MetricRecord& bytes = metric_of(record, Metric::kCollectiveBytes);
  CHECK(bytes.base == 32 * kMiB.count);
  CHECK(bytes.verdict == CompareVerdict::kHigher);
  REQUIRE(record.rows[0].explanations.size() == 2);
  const ExplanationRecord& why = record.rows[0].explanations[0];
  CHECK(why.metric == Metric::kCollectives);
  CHECK(why.by == "phase and kind of collective");
  REQUIRE(why.parts.size() == 1);
  CHECK(why.parts[0].name == "all_reduce in recompute");
  CHECK(why.parts[0].share_ratio == Approx(1));
}

TEST_CASE(
    "collectives of different kinds fail the condition 'counts', even if their numbers are equal") {
  PointRecord other = on_ranks("full", 8);
  for (auto* counts : {&other.ranks->collectives, &other.ranks->collective_bytes}) {
    auto& forward = counts->at(at(Phase::kForward));
    forward["all_gather"] = forward.at("all_reduce");
    forward.erase("all_reduce");
  }
  CompareSettings settings;
  settings.fail_on = {FailOn::kCounts};
  const CompareRecord record = compare(on_ranks("full", 8), other, settings);
  CHECK(metric_of(record, Metric::kCollectives).verdict == CompareVerdict::kDifferent);
  CHECK(metric_of(record, Metric::kCollectives).note ==
        "the same number of collectives, but different counts by name: all_gather in forward");
  CHECK(metric_of(record, Metric::kCollectiveBytes).verdict == CompareVerdict::kDifferent);
  CHECK(record.failed_on == std::vector<std::string>{"counts"});
}

TEST_CASE("collectives are compared per step if the numbers of steps differ") {
  PointRecord longer = on_ranks("full", 8);
  longer.ranks->counted_steps *= 3;
  for (auto* counts : {&longer.ranks->collectives, &longer.ranks->collective_bytes}) {
    for (auto& in_phase : *counts) {
      for (auto& [kind, count] : in_phase) count *= 3;
    }
  }
  const CompareRecord record = compare(on_ranks("full", 8), longer);
  CHECK(metric_of(record, Metric::kCollectives).verdict == CompareVerdict::kSame);
  CHECK(metric_of(record, Metric::kCollectiveBytes).verdict == CompareVerdict::kSame);
}

TEST_CASE("a comparison says if another rank has the highest peak") {
  PointRecord other = on_ranks("full", 8);
  std::swap(other.ranks->ranks[0].peak_allocated, other.ranks->ranks[1].peak_allocated);
  other.ranks->worst_rank = 0;
  const CompareRecord record = compare(on_ranks("full", 8), other);
  const MetricRecord& peak = metric_of(record, Metric::kPeakAllocated);
  CHECK(peak.verdict == CompareVerdict::kDifferent);
  CHECK(peak.note ==
        "rank 0 has the highest peak; in the base it is rank 1; the same highest peak, but rank "
        "0's own peak differs");
}

TEST_CASE("a changed peak is a difference, even on a rank that does not have the highest peak") {
  PointRecord other = on_ranks("full", 8);
  *other.ranks->ranks[0].peak_allocated = *other.ranks->ranks[0].peak_allocated - kMiB;
  const CompareRecord record = compare(on_ranks("full", 8), other);
  CHECK(metric_of(record, Metric::kPeakAllocated).verdict == CompareVerdict::kDifferent);
  CHECK(metric_of(record, Metric::kPeakAllocated).note ==
        "the same highest peak, but rank 0's own peak differs");
  PointRecord later = on_ranks("full", 8);
  later.ranks->ranks[1].after_forward = Bytes{1};
  CHECK(compare(on_ranks("full", 8), later).rows[0].other_differences ==
        std::vector<std::string>{"ranks.ranks"});
}

TEST_CASE("points on one rank have no collectives, and the table has no column for collectives") {
  PointRecord alone = sample_point();
  alone.steps.pop_back();
  const CompareRecord record = compare(alone, alone);
  CHECK(metric_of(record, Metric::kCollectives).verdict == CompareVerdict::kNotMeasured);
  CHECK_THAT(render_compare(record, TableFormat::kText), !Catch::Contains("collectives"));
}

TEST_CASE("the comparison of two reports on ranks equals the approved file", "[golden]") {
  const CompareRecord record = compare(report_of({on_ranks("none", 0), on_ranks("full", 8)}),
                                       report_of({on_ranks("none", 0), on_ranks("full", 16)}));
  testing::check_golden("compare/ranks.txt", render_compare(record, TableFormat::kText));
}

}  // namespace
}  // namespace rematch
