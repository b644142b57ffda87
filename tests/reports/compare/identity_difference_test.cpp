#include "reports/compare/differences.h"

#include "policies/base/json.h"
#include "reports/render/tables/compare_table.h"
#include "tests/reports/compare/sample_comparison.h"
#include "tests/reports/sample_report.h"
#include "tests/support/catch.h"

namespace rematch {

using testing::compare;
using testing::report_of;
using testing::sample_point;

// The base has seeds 0 and 1. The candidate has seed 1 and another width, so it is most similar to
// the base's point with seed 1.
TEST_CASE(
    "if only one report has a point, its differences from the most similar point are listed") {
  PointRecord zero = sample_point("none");
  zero.identity.seed = 0;
  PointRecord one = zero;
  one.identity.seed = 1;
  PointRecord wide = one;
  const auto [name, width] = *one.identity.dimensions.begin();
  wide.identity.dimensions[name] = width + 1;
  const CompareRecord record = compare(report_of({zero, one}), report_of({wide}));
  REQUIRE(record.missing.size() == 2);
  REQUIRE(record.extra.size() == 1);
  const NamedDifference in_width{name, std::to_string(width), std::to_string(width + 1)};
  const NamedDifference in_seed{"seed", "0", "1"};
  CHECK((record.extra[0].identity_differences == std::vector<NamedDifference>{in_width}));
  CHECK(
      (record.missing[0].identity_differences == std::vector<NamedDifference>{in_width, in_seed}));
  CHECK((record.missing[1].identity_differences == std::vector<NamedDifference>{in_width}));
  CHECK_THAT(render_compare(record, TableFormat::kMarkdown),
             Catch::Contains("in the base, 1 in the candidate"));
  const Json json = compare_to_json(record);
  CHECK((compare_from_json(json).missing[0].identity_differences ==
         record.missing[0].identity_differences));
}

}  // namespace rematch
