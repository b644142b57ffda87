// Tests how the simple plan of a synthetic front is printed.
#include "reports/render/tables/front_table.h"
#include "tests/reports/render/sample_front.h"
#include "tests/support/catch.h"

namespace rematch {
namespace {

constexpr std::size_t kScreenColumns = 100;

// The points have peaks of 60, 74, 83, 96, 128 and 160 MiB. Point 4 has the highest peak that fits
// into the machine's 148 MiB.
FrontRecord record_with_simple() {
  FrontRecord record = testing::predicted_front();
  SimplePoint simple{record.front.points[4], Bytes{8 << 20}, {}};
  simple.more_time = simple.point.step_time / 10;
  record.simple = simple;
  return record;
}

TEST_CASE("the simple plan is a row of the front's table, with its distance from the front") {
  const FrontRecord record = record_with_simple();
  const table::Row row = simple_row(record);
  CHECK(row.cells.front() == "simple");
  CHECK_THAT(row.detail, Catch::Contains("8.00 MiB more than the exact front at this step time") &&
                             Catch::Contains("11 % slower at this peak") &&
                             Catch::Contains("whole_region"));
  CHECK_THAT(front_to_text(record, TableFormat::kText, kScreenColumns, {}),
             Catch::Contains("\nsimple "));
  const FrontRecord without = testing::predicted_front();
  CHECK_THAT(front_to_text(without, TableFormat::kText, kScreenColumns, {}),
             !Catch::Contains("simple"));
}

TEST_CASE("the simple plan fits on a screen and names its policy and the systems that run it") {
  const FrontRecord record = record_with_simple();
  const std::string text = simple_to_text(record, kScreenColumns, {"front.json", ""});
  CAPTURE(text);
  CHECK_THAT(text, Catch::Contains("Plan: " + record.simple->point.saves) &&
                       Catch::Contains("torch.utils.checkpoint") &&
                       Catch::Contains("front.json#simple") && Catch::Contains("\nnone ") &&
                       Catch::Contains("\n4 "));
  std::size_t num_lines = 0;
  std::size_t start = 0;
  for (std::size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', start)) {
    CHECK(end - start <= kScreenColumns);
    start = end + 1;
    ++num_lines;
  }
  CHECK(num_lines <= 24);
}

TEST_CASE("the systems that can run the simple plan are listed by schedule") {
  CHECK_THAT(schedule_words(Schedule::kWholeRegion, {}), Catch::Contains("torch.utils.checkpoint"));
  CHECK_THAT(schedule_words(Schedule::kOnDemand, {}), Catch::Contains("only rematch's engine"));
  FrontRecord compiled;
  compiled.dimensions = {{"compiled_graph", 1}};
  CHECK(
      schedule_words(Schedule::kOnDemand, compiled) ==
      "on_demand; rematch.partitioner chooses the order of recompute in the compiled graph itself");
}

}  // namespace
}  // namespace rematch
