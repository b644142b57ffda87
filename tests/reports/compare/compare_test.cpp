#include "reports/compare/compare.h"

#include "policies/base/json.h"
#include "reports/render/pages/page.h"
#include "reports/render/tables/compare_table.h"
#include "reports/schema/validate.h"
#include "tests/reports/compare/sample_comparison.h"
#include "tests/reports/sample_report.h"
#include "tests/support/catch.h"
#include "tests/support/golden.h"

namespace rematch {

using testing::base_report;
using testing::compare;
using testing::kBase;
using testing::kMiB;
using testing::points_with_kernels;
using testing::sample_point;
using testing::scaled;
using testing::slower_report;
using testing::timed_point;

TEST_CASE("points that only one report has, and failed points, are listed but never compared") {
  const CompareRecord record = compare(base_report(), slower_report());
  REQUIRE(record.rows.size() == 3);
  REQUIRE(record.missing.size() == 1);
  CHECK(record.missing[0].policy == "save_compute");
  REQUIRE(record.extra.size() == 1);
  CHECK(record.extra[0].policy == "skip_nth(2)");
  CHECK(record.extra[0].identity_differences.empty());  // the base has no similar point
  REQUIRE(record.failed.size() == 1);
  CHECK(record.failed[0].policy == "attn_only");
  CHECK(record.failed[0].base_status == PointStatus::kOk);
  CHECK(record.failed[0].candidate_status == PointStatus::kOom);
  CHECK_THAT(record.failed[0].reason, Catch::Contains("20 MiB"));
}

TEST_CASE("a policy that resolves to a different plan is still the same policy") {
  PointRecord changed = sample_point("full");
  changed.identity.plan_sha256 = std::string(64, 'c');
  const CompareRecord record = compare(sample_point("full"), changed);
  REQUIRE(record.rows.size() == 1);
  CHECK(record.rows[0].plan_differs);
  CHECK(record.rows[0].base_key != record.rows[0].candidate_key);
  PointRecord larger = sample_point("full");
  larger.identity.dimensions["layers"] = 9;
  CHECK(compare(sample_point("full"), larger).rows.empty());
}

TEST_CASE("the JSON of a compare record fits its schema, is readable and equals the approved file",
          "[golden]") {
  CompareSettings settings;
  settings.fail_on = {FailOn::kSlower, FailOn::kLoss};
  const CompareRecord record = compare(base_report(), slower_report(), settings);
  const Json json = compare_to_json(record);
  CHECK(validate(json).value_or("") == "");
  CHECK(compare_to_json(compare_from_json(json)) == json);
  testing::check_golden("compare/compare.json", json.dump(2) + "\n");
  testing::check_golden("compare/compare.txt", render_compare(record, TableFormat::kText));
  testing::check_golden("compare/compare.md", render_compare(record, TableFormat::kMarkdown));
}

TEST_CASE("if the metrics of a row do not match the list of floors, the error contains the path") {
  const Json json = compare_to_json(compare(base_report(), slower_report()));
  const auto refusal = [&](const char* pointer) {
    Json broken = json;
    Json& list = broken[Json::json_pointer(pointer)];
    list.erase(2);
    CHECK_THROWS_WITH(compare_from_json(broken),
                      "rows[0].metrics: are not the metrics that `floors` names");
  };
  refusal("/floors");
  refusal("/rows/0/metrics");
}

// The comparison has every verdict, long names, names that contain markup, kernel records, points
// that only one report has, and two versions of LibTorch.
TEST_CASE(
    "the page of a comparison escapes markup in names, and lists kernels that explain a "
    "difference") {
  Report base = base_report();
  Report candidate = slower_report();
  const auto [below, above] = points_with_kernels();
  base.points[1].kernels = below.kernels;
  candidate.points[1].kernels = above.kernels;
  const auto add = [&](const std::string& policy, const std::vector<double>& left,
                       const std::vector<double>& right) {
    base.points.push_back(timed_point(policy, left));
    candidate.points.push_back(timed_point(policy, right));
  };
  add("torchtune(ac_mode=selective,ac_option=2,save=[attention,aten::mm,aten::addmm])", kBase,
      scaled(0.8));
  add("<script>alert('x')</script>", kBase, scaled(2.6));
  add("nth_first(2)", {10000, 13000, 9000, 10100}, {10100, 9100, 13100, 11000});
  add("nth_last(2)", kBase, scaled(1.0));
  base.points.back().memory->peak_allocated = Bytes{40 * kMiB.count};
  candidate.provenance.environment.libtorch_version = "2.12.0";
  const std::string page = render_page({}, {{"compare.json", compare(base, candidate)}});
  testing::keep_page("compare.html", page);
  CHECK_THAT(page, !Catch::Contains("<script>alert") && Catch::Contains("kernels in recompute"));
}

}  // namespace rematch
