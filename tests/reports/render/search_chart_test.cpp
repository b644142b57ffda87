#include "reports/render/charts/search_chart.h"

#include <algorithm>

#include "policies/search/measured_front.h"
#include "reports/render/charts/search_marks.h"
#include "reports/render/front_tables.h"
#include "reports/render/front_text.h"
#include "tests/reports/render/sample_front.h"
#include "tests/support/catch.h"

namespace rematch {
namespace {

using testing::predicted_front;
using testing::telling_front;

Picture drawn(const FrontRecord& record, double width = 900) {
  return draw_search(record, every_point(record.front), width);
}

template <class Kind, class Holds>
std::vector<Kind> shapes_of(const Picture& picture, Holds&& holds) {
  std::vector<Kind> found;
  for (const Shape& shape : picture.shapes) {
    const auto* kind = std::get_if<Kind>(&shape);
    if (kind != nullptr && holds(*kind)) found.push_back(*kind);
  }
  return found;
}

std::vector<Marker> markers_with(const Picture& picture, const std::string& hint) {
  return shapes_of<Marker>(
      picture, [&](const Marker& marker) { return marker.hint.starts_with(hint + "\n"); });
}

bool says(const Picture& picture, const std::string& text) {
  return !shapes_of<Label>(picture, [&](const Label& label) {
            return label.text.find(text) != std::string::npos;
          }).empty();
}

TEST_CASE("a measured point stands twice in the picture, and a thin line joins the two") {
  const FrontRecord record = telling_front();
  const Picture picture = drawn(record);
  const std::vector<Marker> marks = markers_with(picture, "point 1");
  REQUIRE(marks.size() == 3);  // predicted, measured, and the cross of what loses
  CHECK(marks[0].fill == Paint::kSurface);
  CHECK(marks[1].fill == Paint::kBlue);
  CHECK(marks[1].center.y < marks[0].center.y);  // slower than predicted
  const auto joins = shapes_of<Line>(picture, [&](const Line& line) {
    return line.from == marks[0].center && line.to == marks[1].center;
  });
  REQUIRE(joins.size() == 1);
  CHECK(joins[0].width == 1);
  CHECK(joins[0].dash == Dash::kSolid);
  CHECK(says(picture, "predicted, joined to its measurement"));
  CHECK(says(picture, "measured, 95 % interval"));
}

TEST_CASE("what was not run, or failed, stands once") {
  const Picture picture = drawn(telling_front());
  CHECK(markers_with(picture, "point 2").size() == 1);
  REQUIRE(markers_with(picture, "point 4").size() == 1);
  CHECK_THAT(markers_with(picture, "point 4")[0].hint,
             Catch::Contains("timeout, no result after 10 min"));
}

TEST_CASE("points that lose when measured are crossed, and no others") {
  const FrontRecord record = telling_front();
  REQUIRE_FALSE(record.front.points[1].measured->lost_to.empty());
  REQUIRE(record.front.points[3].measured->lost_to.empty());
  const Picture picture = drawn(record);
  const auto is_cross = [](const Marker& marker) { return marker.kind == MarkerKind::kCross; };
  const auto crossed = [&](const std::string& name) {
    const std::vector<Marker> marks = markers_with(picture, name);
    return std::any_of(marks.begin(), marks.end(), is_cross);
  };
  CHECK(crossed("point 1"));
  CHECK_FALSE(crossed("point 3"));
  CHECK(says(picture, "loses to another when measured"));
  CHECK_FALSE(says(drawn(predicted_front()), "loses to another"));
}

TEST_CASE("baselines are squares with their names, and share one at one place") {
  const Picture picture = drawn(predicted_front());
  CHECK(says(picture, "full"));
  CHECK(says(picture, "nth_first(2), first_n(2)"));
  CHECK(markers_with(picture, "full").at(0).kind == MarkerKind::kSquare);
  CHECK(markers_with(picture, "point 0").at(0).kind == MarkerKind::kCircle);
}

TEST_CASE("a limit is a line where it is near the points, else words") {
  FrontRecord record = predicted_front();
  const auto limit_lines = [](const Picture& picture) {
    return shapes_of<Line>(picture, [](const Line& line) { return line.stroke == Paint::kOrange; })
        .size();
  };
  CHECK(limit_lines(drawn(record)) == 1);
  CHECK(says(drawn(record), "device limit 148 MiB"));
  record.device_memory = Bytes{std::int64_t{1} << 40};
  CHECK(limit_lines(drawn(record)) == 0);
  CHECK(says(drawn(record), "device limit 1.00 TiB, far to the right"));
  record.device_memory = Bytes{1 << 20};
  CHECK(says(drawn(record), "far to the left"));
  record.budget = Bytes{100 << 20};
  CHECK(says(drawn(record), "budget 100 MiB"));
  CHECK(limit_lines(drawn(record)) == 1);
}

TEST_CASE("an interval far wider than all steps ends at the frame, and squeezes nothing") {
  FrontRecord record = telling_front();
  const double quiet = markers_with(drawn(record), "point 0").at(1).center.y;
  MeasuredFigures& figures = *record.front.points[0].measured;
  figures.step_interval = {*figures.step_time / 100, *figures.step_time * 100};
  const Picture picture = drawn(record);
  CHECK(markers_with(picture, "point 0").at(1).center.y > quiet / 2);
  const double x = markers_with(picture, "point 0").at(1).center.x;
  const auto ends = shapes_of<Line>(picture, [&](const Line& line) {
    return line.from.y == line.to.y && line.from.x < x && line.to.x > x &&
           line.to.x - line.from.x < 10 && line.stroke == Paint::kBlue;
  });
  CHECK(ends.empty());
}

TEST_CASE("predictions of a measured front are calibrated, run or not") {
  FrontRecord record = predicted_front();
  Front& front = record.front;
  for (const std::size_t index : {0, 3, 5}) {
    FrontPoint& point = front.points[index];
    point.measured.emplace();
    point.measured->peak = point.figures.peak;
    point.measured->step_time = point.step_time * 2;
  }
  CHECK(predicted_step(front, front.points[1]) == front.points[1].step_time);
  weigh_measurement(front, {0, 3, 5}, {});
  CHECK(predicted_step(front, front.points[1]) == front.points[1].step_time * 2);
  CHECK(predicted_step(front, front.points[3]) == front.points[3].step_time * 2);
}

TEST_CASE("all of a front's picture lies inside it, wide and narrow") {
  for (const double width : {1078.0, 510.0, 332.0}) {
    CAPTURE(width);
    const Picture picture = drawn(telling_front(), width);
    const Box whole{0, 0, picture.width, picture.height};
    for (const Shape& shape : picture.shapes) CHECK(whole.contains(extent(shape)));
  }
}

TEST_CASE("the knee is one short line, the plan of an answer is in words") {
  FrontRecord record = predicted_front();
  CHECK(knee_words(record.front) == "The knee, point 3: peak 96.0 MiB, step 108 ms");
  CHECK(answer_words(record).empty());
  record.answer = record.front.points[1];
  CHECK_THAT(answer_words(record), Catch::EndsWith("3: keep all"));
}

TEST_CASE("words of a plan are cut between words where all layers would fill a screen") {
  FrontPoint point;
  point.saves = "layers 0-3: keep all";
  CHECK(short_saves(point) == point.saves);
  point.saves.clear();
  for (int layer = 0; layer < 80; ++layer) point.saves += std::to_string(layer) + ": keep mm; ";
  CHECK(short_saves(point).size() < 310);
  CHECK_THAT(short_saves(point), Catch::EndsWith(" ...") && Catch::StartsWith("0: keep mm; 1:"));
}

}  // namespace
}  // namespace rematch
