#include "reports/render/tables/compare_table.h"

#include "tests/reports/compare/sample_comparison.h"
#include "tests/support/catch.h"

namespace rematch {

using testing::compare;
using testing::timed_point;

TEST_CASE("a change that rounding would hide is told by how much it is, with its unit") {
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

}  // namespace rematch
