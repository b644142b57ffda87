#include "reports/render/tables/ranks_table.h"

#include "policies/base/json.h"
#include "reports/record/json/record_json.h"
#include "reports/render/tables/report_table.h"
#include "tests/reports/sample_report.h"
#include "tests/support/catch.h"
#include "tests/support/golden.h"

namespace rematch {
namespace {

using testing::sample_on_ranks;
using testing::sample_point;
using testing::sample_provenance;

Report report_on_ranks() {
  Report report{sample_provenance(), {}, {}};
  report.points = {sample_on_ranks("none", 0), sample_on_ranks("full", 12)};
  return report;
}

std::vector<std::string> cells_of(const PointRecord& point) {
  Report report{sample_provenance(), {}, {}};
  report.points = {point};
  const table::Grid grid = ranks_grid(compare_policies(report).at(0)).grid;
  REQUIRE(grid.rows.size() == 1);
  return grid.rows[0].cells;
}

TEST_CASE("a report of several ranks lists their collectives and peaks below its table",
          "[golden]") {
  testing::check_golden("report_of_ranks.txt",
                        render_table(report_on_ranks(), TableFormat::kText, 100));
}

TEST_CASE("collectives are counted per step and phase, and bytes over all phases") {
  const std::vector<std::string> cells = cells_of(sample_on_ranks("full", 12));
  CHECK(cells == std::vector<std::string>{"full", "on_demand", "16/12/16", "44.0 MiB",
                                          "69.0 MiB to 70.0 MiB (rank 1)"});
}

TEST_CASE("equal peaks are printed once, and a simulated rank is marked") {
  PointRecord point = sample_on_ranks("none", 0);
  point.ranks->ranks[0].peak_allocated = point.ranks->ranks[1].peak_allocated;
  CHECK(cells_of(point).back() == "all 100 MiB");
  point.identity.pretended_rank = 3;
  CHECK(cells_of(point).back() == "rank 3 alone");
}

TEST_CASE("a report without ranks has no table of ranks") {
  Report report{sample_provenance(), {}, {}};
  report.points = {sample_point("none")};
  const PolicyComparison comparison = compare_policies(report).at(0);
  CHECK(ranks_grid(comparison).grid.rows.empty());
  CHECK_THAT(render_table(report, TableFormat::kText, 100), !Catch::Contains("Collectives"));
}

TEST_CASE("the figures of ranks are read back unchanged") {
  const Report report = report_on_ranks();
  const Report again = report_from_json(Json::parse(report_to_json(report).dump()));
  CHECK(again.points.at(1).ranks == report.points[1].ranks);
  CHECK(again.points.at(1).unknown.empty());
}

}  // namespace
}  // namespace rematch
