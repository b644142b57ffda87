#include "reports/render/tables/compare_table.h"

#include <string>
#include <vector>

#include "tests/reports/compare/sample_comparison.h"
#include "tests/support/catch.h"

namespace rematch {

using testing::compare;
using testing::timed_point;

TEST_CASE("a change that rounding would hide is printed as a difference with its unit") {
  CompareSettings settings;
  settings.floors[Metric::kStepTime] = {0, 0};
  const PointRecord base = timed_point("none", {100000, 100001, 100002, 100001});
  PointRecord changed = timed_point("none", {100010, 100011, 100012, 100011});
  changed.steps.back().loss = *base.steps.back().loss + 2.5e-7;
  changed.steps.back().loss_bits = "0x3fc00001";
  const std::string text = render_compare(compare(base, changed, settings), TableFormat::kText);
  CHECK_THAT(text, Catch::Contains("(+2.5e-07)"));
  CHECK_THAT(text, Catch::Contains("step time 100 ms to 100 ms (+10.0 us)"));
}

TEST_CASE("a change below 0.1 % is printed with a direction but without a sign") {
  PointRecord base = timed_point("none", {10000, 10001});
  base.memory.emplace().peak_allocated = Bytes{1 << 30};
  PointRecord candidate = base;
  candidate.memory->peak_allocated = Bytes{(1 << 30) + 512};
  CHECK_THAT(render_compare(compare(base, candidate), TableFormat::kText),
             Catch::Contains("<0.1 % higher"));
  CHECK_THAT(render_compare(compare(candidate, base), TableFormat::kText),
             Catch::Contains("<0.1 % lower"));
}

TEST_CASE(
    "a comment on a pull request starts with the verdict, and text starts with both commits") {
  CompareRecord record =
      compare(timed_point("full", {10000, 10001}), timed_point("full", {10000, 10001}));
  record.base.file = "base.json";
  record.base.git_commit = "0123456789abcdef";
  record.candidate.file = "new.json";
  record.candidate.git_commit = "89abcde";
  record.candidate.git_dirty = true;
  const std::string sources =
      "base.json (base, commit 0123456789ab) and new.json (candidate, commit 89abcde with local "
      "changes)";
  CHECK(sources_words(record) == sources);
  CHECK_THAT(render_compare(record, TableFormat::kText, 200), Catch::StartsWith(sources));
  const std::string markdown = render_compare(record, TableFormat::kMarkdown);
  CHECK_THAT(markdown, Catch::StartsWith("**Verdict: 1 row, no difference.**\n"));
  CHECK(markdown.find("Verdict") == markdown.rfind("Verdict"));
}

// The base's rounds take 10 ms, the candidate's 7 to 48 ms, so the interval of the ratio is very
// wide.
TEST_CASE("noise in times is mentioned once below the rows, with advice") {
  const std::vector<double> quiet = {10000, 10001, 10002, 10001};
  const CompareRecord noisy =
      compare(timed_point("full", quiet), timed_point("full", {7000, 48000, 18000, 18000}));
  const std::string text = render_compare(noisy, TableFormat::kText, 1000);
  CHECK_THAT(text, Catch::Contains("\nStep time: unsure in 1 of 1 row, too noisy to measure in 1: "
                                   "time both again on an idle machine, interleaved and with more "
                                   "rounds.\n") &&
                       Catch::Contains("  too noisy ") && !Catch::Contains("unsure  "));
  const CompareRecord same = compare(timed_point("full", quiet), timed_point("full", quiet));
  const std::string once = render_compare(same, TableFormat::kText, 1000);
  CHECK_THAT(
      once,
      Catch::Contains(
          "\nStep time: both sides have the same samples, so this is one measurement, not two "
          "(1 of 1 row).\n"));
  CHECK(once.find("the samples") == once.rfind("the samples"));
}

}  // namespace rematch
