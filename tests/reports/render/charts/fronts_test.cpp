// Tests the picture of a searched front.
#include <algorithm>
#include <cmath>

#include "policies/base/rejected.h"
#include "policies/search/front/measured_front.h"
#include "reports/render/charts/builders.h"
#include "reports/render/charts/chart.h"
#include "reports/render/tables/front_table.h"
#include "tests/reports/render/sample_front.h"
#include "tests/support/catch.h"

namespace rematch::chart {
namespace {

using testing::predicted_front;
using testing::representative_front;

Picture drawn(const FrontRecord& record) {
  return draw(searched_front(record, every_point(record.front)));
}

template <class Kind, class Holds>
std::vector<Kind> shapes_in(const Picture& picture, Holds&& holds) {
  std::vector<Kind> found;
  for (const Shape& shape : picture.shapes) {
    const auto* kind = std::get_if<Kind>(&shape);
    if (kind != nullptr && holds(*kind)) found.push_back(*kind);
  }
  return found;
}

std::vector<Marker> markers_with(const Picture& picture, const std::string& hint) {
  return shapes_in<Marker>(
      picture, [&](const Marker& marker) { return marker.hint.starts_with(hint + "\n"); });
}

bool says(const Picture& picture, const std::string& text) {
  const auto holds = [&](const auto& words) { return words.text.find(text) != std::string::npos; };
  return !shapes_in<Label>(picture, holds).empty() ||
         std::any_of(picture.legend.begin(), picture.legend.end(), holds);
}

TEST_CASE("a measured point has a predicted and a measured marker, joined by a thin line") {
  const FrontRecord record = representative_front();
  const Picture picture = drawn(record);
  const std::vector<Marker> marks = markers_with(picture, "point 1");
  // the prediction, the measurement, and a cross because another point beats this point
  REQUIRE(marks.size() == 3);
  CHECK(marks[0].fill == Paint::kSurface);
  CHECK(marks[1].fill == Paint::kBlue);
  CHECK(marks[1].center.y < marks[0].center.y);  // the measured step is slower than predicted
  const auto joins = shapes_in<Path>(picture, [&](const Path& line) {
    return line.corners == std::vector{marks[0].center, marks[1].center};
  });
  REQUIRE(joins.size() == 1);
  CHECK(joins[0].width == 1);
  CHECK_FALSE(joins[0].is_dashed);
  CHECK(says(picture, "Predicted, joined to its measurement"));
  CHECK(says(picture, "Measured, with its 95 % interval"));
}

TEST_CASE("a point that failed or was not run has only a predicted marker") {
  const Picture picture = drawn(representative_front());
  CHECK(markers_with(picture, "point 2").size() == 1);
  REQUIRE(markers_with(picture, "point 4").size() == 1);
  CHECK_THAT(markers_with(picture, "point 4")[0].hint,
             Catch::Contains("timeout, no result after 10 min"));
}

TEST_CASE("only points that another measured point beats are crossed out") {
  const FrontRecord record = representative_front();
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
  CHECK(says(picture, "Beaten by another point when measured"));
  CHECK_FALSE(says(drawn(predicted_front()), "Beaten by another"));
}

TEST_CASE("baselines are squares with names, and baselines with equal figures share a square") {
  const Picture picture = drawn(predicted_front());
  CHECK(says(picture, "full"));
  CHECK(says(picture, "nth_first(2), first_n(2)"));
  CHECK(markers_with(picture, "full").at(0).kind == MarkerKind::kSquare);
  CHECK(markers_with(picture, "point 0").at(0).kind == MarkerKind::kCircle);
}

TEST_CASE("the device limit is a line if points are near it, and is stated in words otherwise") {
  FrontRecord record = predicted_front();
  const auto limit_lines = [](const Picture& picture) {
    return shapes_in<Path>(picture, [](const Path& line) { return line.stroke == Paint::kOrange; })
        .size();
  };
  CHECK(limit_lines(drawn(record)) == 1);
  CHECK(says(drawn(record), "Device limit 148 MiB"));
  record.device_memory = Bytes{std::int64_t{1} << 40};
  CHECK(limit_lines(drawn(record)) == 0);
  CHECK(says(drawn(record), "Device limit 1.00 TiB, far to the right"));
  record.device_memory = Bytes{1 << 20};
  CHECK(says(drawn(record), "far to the left"));
  record.budget = Bytes{100 << 20};
  CHECK(says(drawn(record), "Budget 100 MiB"));
  CHECK(limit_lines(drawn(record)) == 1);
}

TEST_CASE("a very wide interval ends at the frame and does not stretch the axis") {
  FrontRecord record = representative_front();
  const double quiet = markers_with(drawn(record), "point 0").at(1).center.y;
  MeasuredFigures& figures = *record.front.points[0].measured;
  figures.step_interval = {*figures.step_time / 100, *figures.step_time * 100};
  const Picture picture = drawn(record);
  CHECK(markers_with(picture, "point 0").at(1).center.y > quiet / 2);
  const double x = markers_with(picture, "point 0").at(1).center.x;
  const auto ends = shapes_in<Path>(picture, [&](const Path& line) {
    const Box box = extent(line);
    return box.height() == 0 && box.left < x && box.right > x && box.width() < 10 &&
           line.stroke == Paint::kBlue;
  });
  CHECK(ends.empty());
}

TEST_CASE("predictions of a measured front are calibrated, even for points that were not run") {
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

// A hundred points have almost the same position.
TEST_CASE("every point of a searched front has its number beside its marker or in the legend") {
  FrontRecord record = predicted_front();
  Front& front = record.front;
  const FrontPoint point = front.points[0];
  for (int index = 0; index < 100; ++index) {
    front.points.push_back(point);
    front.points.back().figures.peak = point.figures.peak + Bytes{index << 16};
    front.points.back().step_time = point.step_time - std::chrono::microseconds(20 * index);
  }
  const Picture picture = draw(searched_front(record, every_point(front)));
  std::string words;
  for (const Key& key : picture.legend) words += ", " + key.text + ",";
  for (const Shape& shape : picture.shapes) {
    if (const auto* label = std::get_if<Label>(&shape)) words += ", " + label->text + ",";
  }
  for (std::size_t index = 0; index < front.points.size(); ++index) {
    CHECK_THAT(words, Catch::Contains(" " + std::to_string(index) + ","));
  }
}

// The medians are 100 and 104 ms. The interval of the first is 40 to 160 ms.
TEST_CASE("the time axis is scaled to the medians, and a longer interval ends in an arrow") {
  Plane plane{"noisy"};
  plane.spots.resize(2);
  plane.spots[0].measured = Position{1e9, 100e6};
  plane.spots[0].interval = {{40e6, 160e6}};
  plane.spots[1].measured = Position{2e9, 104e6};
  plane.spots[1].interval = {{103e6, 105e6}};
  const Picture picture = draw(plane);
  std::vector<double> heights;
  for (const Shape& shape : picture.shapes) {
    if (const auto* marker = std::get_if<Marker>(&shape)) heights.push_back(marker->center.y);
  }
  REQUIRE(heights.size() == 2);
  // The plot is 300 units high. With the whole interval on the axis, the markers would be only 21
  // units apart.
  CHECK(std::abs(heights[0] - heights[1]) > 60);
}

// Three layers recompute everything, two keep attention, and three keep everything.
TEST_CASE(
    "a strip shows what each layer of a point saves, with one colour for each set of saved ops") {
  FrontRecord record = predicted_front();
  record.front.points[0].layers = {{"0-2", true, {}, {}},
                                   {"3-4", true, {}, {"attention.core::rematch::attention"}},
                                   {"5-7", false, {}, {}}};
  record.front.points[1].layers = {{"0-7", true, {}, {"attention.core::rematch::attention"}}};
  const Rows chart = kept_layers(record, {0, 1});
  REQUIRE(chart.rows.size() == 2);
  const std::vector<Segment>& strip = chart.rows[0].segments;
  REQUIRE(strip.size() == 3);
  CHECK(std::array{strip[0].value, strip[1].value, strip[2].value} == std::array{3.0, 2.0, 3.0});
  CHECK(strip[1].hint == "layers 3-4: keep attention.core::attention");
  CHECK(chart.rows[1].segments.at(0).value == 8);
  CHECK(chart.rows[1].segments.at(0).fill == strip[1].fill);
  REQUIRE(chart.legend.size() == 3);
  CHECK(chart.legend[0].text == "Recompute all");
  CHECK(chart.legend[1].text == "Keep attention");
  CHECK(chart.legend[2].text == "Keep all");
  for (FrontPoint& point : record.front.points) point.layers.clear();
  CHECK(kept_layers(record, {0, 1}).is_empty());
}

TEST_CASE("a searched front has only one chart") {
  CHECK(std::holds_alternative<Picture>(draw_chart("front", representative_front())));
  CHECK(std::holds_alternative<Rejected>(draw_chart("memory", representative_front())));
}

// Kept casts and norms do not change a layer's colour, which depends only on costly ops. The
// prefixes "+0." and "+1." name the layer in a region of two layers.
TEST_CASE("layers with the same costly ops share a colour, whatever else they keep") {
  FrontRecord record = predicted_front();
  const std::vector<std::string> mixed = {"attention_norm::aten::rsqrt",
                                          "attention.core::rematch::attention", "ffn::aten::mm#1"};
  record.front.points[0].layers = {
      {"0, 1", true, {}, {"+0.ffn::aten::mm#2", "+1.attention.core::rematch::attention"}},
      {"2-4, 6", true, {}, mixed},
      {"5", true, {}, {"ffn_norm::aten::rsqrt"}}};
  const Rows chart = kept_layers(record, {0});
  const std::vector<Segment>& strip = chart.rows.at(0).segments;
  REQUIRE(strip.size() == 3);
  CHECK(std::array{strip[0].value, strip[1].value, strip[2].value} == std::array{2.0, 4.0, 1.0});
  CHECK(strip[0].fill == strip[1].fill);
  REQUIRE(chart.legend.size() == 2);
  CHECK(chart.legend[0].text == "Keep attention, matmuls of ffn");
  CHECK(chart.legend[1].text == "Keep only other ops");
}

}  // namespace
}  // namespace rematch::chart
