#include "reports/render/tables/ranks_table.h"

#include "policies/base/json.h"
#include "reports/record/json/record_json.h"
#include "reports/render/tables/report_table.h"
#include "tests/reports/sample_report.h"
#include "tests/support/catch.h"

namespace rematch {
namespace {

constexpr std::int64_t kHostMiB = 1 << 20;

Report report_with_host() {
  Report report{testing::sample_provenance(), {}, {}};
  report.points = {testing::sample_point("none"), testing::sample_point("full")};
  HostRecord& host = report.points[1].memory->host.emplace();
  host.peak = host.copied_out = Bytes{12 * kHostMiB};
  host.copied_back = Bytes{10 * kHostMiB};
  host.predicted_peak = Bytes{12 * kHostMiB};
  return report;
}

TEST_CASE("a point that offloads has a row for its host memory") {
  Report report = report_with_host();
  const table::Grid grid = host_grid(compare_policies(report).at(0)).grid;
  REQUIRE(grid.rows.size() == 1);
  CHECK(grid.rows[0].cells ==
        std::vector<std::string>{"full", "on_demand", "12.0 MiB", "12.0 MiB", "10.0 MiB"});
  const std::string text = render_table(report, TableFormat::kText, 100);
  CHECK_THAT(text, Catch::Contains("host peak  copied out  copied back"));
  CHECK_THAT(text, Catch::Contains("Host peak: peak bytes of host memory"));
  CHECK_THAT(text, !Catch::Contains("exposed"));

  report.points[1].memory->host->hidden_time = std::chrono::milliseconds(7);
  report.points[1].memory->host->exposed_time = std::chrono::milliseconds(2);
  const table::Grid timed = host_grid(compare_policies(report).at(0)).grid;
  CHECK(timed.rows[0].cells.at(5) == "7.00 ms");
  CHECK(timed.rows[0].cells.at(6) == "2.00 ms");
}

TEST_CASE("a report whose plans keep nothing on the host has no host table") {
  Report report{testing::sample_provenance(), {}, {}};
  report.points = {testing::sample_point("none")};
  const PolicyComparison comparison = compare_policies(report).at(0);
  CHECK(host_grid(comparison).grid.rows.empty());
  CHECK_THAT(render_table(report, TableFormat::kText, 100), !Catch::Contains("Host peak"));
}

TEST_CASE("the host memory of a report is read back unchanged") {
  Report report = report_with_host();
  report.points[1].memory->host->exposed_time = std::chrono::nanoseconds(5);
  const Report again = report_from_json(Json::parse(report_to_json(report).dump()));
  CHECK(again.points.at(1).memory->host == report.points[1].memory->host);
  CHECK(again.points.at(1).unknown.empty());
  CHECK_FALSE(again.points.at(0).memory->host.has_value());
}

}  // namespace
}  // namespace rematch
