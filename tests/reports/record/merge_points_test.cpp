#include "reports/record/record_json.h"
#include "reports/schema/validate.h"
#include "tests/reports/sample_report.h"
#include "tests/support/catch.h"

namespace rematch {
namespace {

using testing::sample_point;
using testing::sample_provenance;

PointFile point_file(const std::string& policy) {
  return PointFile{sample_provenance(), sample_point(policy), {}};
}

std::string rejection(const std::vector<PointFile>& files) {
  const auto merged = merge_points(files);
  return std::holds_alternative<Rejected>(merged) ? std::get<Rejected>(merged).message : "merged";
}

}  // namespace

TEST_CASE("point files of one machine become a report in their order") {
  const auto merged = merge_points({point_file("none"), point_file("full")});
  REQUIRE(std::holds_alternative<Report>(merged));
  const Report& report = std::get<Report>(merged);
  REQUIRE(report.points.size() == 2);
  CHECK(report.points[0].policy == "none");
  CHECK(report.points[1].policy == "full");
  CHECK(report.provenance.reproduce == sample_provenance().reproduce);
  CHECK(validate(report_to_json(report)) == std::nullopt);
}

TEST_CASE("points of different machines are not merged, host names aside") {
  PointFile other = point_file("full");
  other.provenance.environment.hostname = "elsewhere";
  CHECK(rejection({point_file("none"), other}) == "merged");
  other.provenance.environment.cpu_model = "Another CPU";
  CHECK_THAT(rejection({point_file("none"), other}),
             Catch::Contains("point full was measured in another environment than none"));
}

TEST_CASE("one point twice is refused, two policies with one plan are not") {
  CHECK_THAT(rejection({point_file("none"), point_file("none")}),
             Catch::Contains("two points of policy none have the key " +
                             point_key(point_file("none").point.identity)));
  PointFile same_plan = point_file("none");
  same_plan.point.policy = "skip_list([])";
  CHECK(rejection({point_file("none"), same_plan}) == "merged");
  CHECK(rejection({}) == "no points to merge; a report needs at least one");
}

}  // namespace rematch
