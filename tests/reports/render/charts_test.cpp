// Properties of every chart for figures of any kind: finite, inside the picture, no text on text.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

#include "reports/render/charts/chart.h"
#include "reports/render/charts/count_chart.h"
#include "reports/render/charts/forest_chart.h"
#include "reports/render/charts/front_chart.h"
#include "reports/render/charts/holder_chart.h"
#include "reports/render/charts/loss_chart.h"
#include "reports/render/charts/memory_chart.h"
#include "reports/render/charts/placement.h"
#include "reports/render/charts/time_chart.h"
#include "tests/reports/render/sample_comparisons.h"
#include "tests/reports/sample_report.h"
#include "tests/support/catch.h"
#include "tests/support/seeds.h"

namespace rematch {
namespace {

using testing::random_report;
using testing::telling_report;

bool is_finite(const Box& box) {
  return std::isfinite(box.left) && std::isfinite(box.top) && std::isfinite(box.right) &&
         std::isfinite(box.bottom);
}

// Glyphs fill the middle of their box.
Box core(const Box& box) { return {box.left + 0.5, box.top + 2, box.right - 0.5, box.bottom - 2}; }

// Lines, bars and markers; grid lines run below text on purpose, and so do areas.
std::vector<Box> strokes_of(const Picture& picture) {
  std::vector<Box> strokes;
  for (const Shape& shape : picture.shapes) {
    const auto* line = std::get_if<Line>(&shape);
    if (line != nullptr && line->stroke == Paint::kGrid) continue;
    if (std::holds_alternative<Label>(shape) || std::holds_alternative<Path>(shape)) continue;
    constexpr int kPieces = 100;
    for (int piece = 0; piece < (line == nullptr ? 1 : kPieces); ++piece) {
      Box box = extent(shape);
      if (line != nullptr) {
        const auto at = [&](double part) {
          return Position{line->from.x + (line->to.x - line->from.x) * part,
                          line->from.y + (line->to.y - line->from.y) * part};
        };
        box = extent(Line{at(1.0 * piece / kPieces), at(1.0 * (piece + 1) / kPieces)});
      }
      strokes.push_back({box.left - 0.1, box.top - 0.1, box.right + 0.1, box.bottom + 0.1});
    }
  }
  return strokes;
}

// Empty if the picture is well made; else the first thing that is wrong with it.
std::string flaw(const Picture& picture) {
  std::vector<std::pair<Box, std::string>> labels;
  const std::vector<Box> strokes = strokes_of(picture);
  const Box frame{-0.6, -0.6, picture.width + 0.6, picture.height + 0.6};
  for (const Shape& shape : picture.shapes) {
    const Box box = extent(shape);
    const auto* label = std::get_if<Label>(&shape);
    const std::string what = label == nullptr ? "a shape" : "'" + label->text + "'";
    if (!is_finite(box)) return what + " is not finite";
    if (!frame.contains(box)) return what + " leaves the picture";
    if (label == nullptr) continue;
    for (const auto& [other, text] : labels) {
      if (core(box).overlaps(core(other))) return what + " covers " + text;
    }
    if (std::any_of(strokes.begin(), strokes.end(),
                    [&](const Box& stroke) { return core(box).overlaps(stroke); })) {
      return "a line or a bar runs through " + what;
    }
    labels.emplace_back(box, what);
  }
  to_svg(picture);
  return "";
}

std::vector<Picture> every_chart(const Report& report, double width) {
  std::vector<Picture> pictures;
  for (const Comparison& comparison : compare_policies(report)) {
    const std::vector<ChartPoint> points = chart_points_of(comparison);
    const auto limit = memory_limit(comparison, report.provenance.environment);
    if (has_front(points)) pictures.push_back(draw_front(points, limit, width));
    for (const OpClass op_class : {OpClass::kAttentionForward, OpClass::kMatmul}) {
      pictures.push_back(draw_bars(count_chart(points, op_class), width));
    }
    pictures.push_back(draw_bars(holder_chart(points), width));
    pictures.push_back(draw_bars(phase_time_chart(points), width));
    for (const BarChart& chart : class_time_charts(points)) {
      pictures.push_back(draw_bars(chart, width));
    }
    pictures.push_back(draw_forest(step_ratio_chart(points), width));
    pictures.push_back(draw_losses(loss_curves(points), loss_band(points), width));
    for (const ChartPoint& charted : points) {
      if (!has_timeline(charted)) continue;
      pictures.push_back(draw_memory(charted, highest_timeline(points), std::min(width, 340.0)));
    }
    pictures.push_back(draw_memory_panels(points, 3));
  }
  return pictures;
}

bool has_label(const Picture& picture, const std::string& text) {
  return std::any_of(picture.shapes.begin(), picture.shapes.end(), [&](const Shape& shape) {
    const auto* label = std::get_if<Label>(&shape);
    return label != nullptr && label->text == text;
  });
}

std::vector<ChartPoint> points_of_first(const std::vector<Comparison>& comparisons) {
  return chart_points_of(comparisons.front());
}

}  // namespace

TEST_CASE("charts of any figures are finite, inside their pictures, and legible", "[property]") {
  for (std::uint32_t seed = 0; seed < testing::num_seeds(60); ++seed) {
    const Report report = random_report(seed);
    for (const double width : {1078.0, 510.0, 332.0}) {
      for (const Picture& picture : every_chart(report, width)) {
        CAPTURE(seed, width, picture.title);
        CHECK(flaw(picture) == "");
      }
    }
  }
}

TEST_CASE("the charts of a telling report are well made") {
  for (const double width : {1078.0, 510.0, 332.0}) {
    for (const Picture& picture : every_chart(telling_report(), width)) {
      CAPTURE(width, picture.title);
      CHECK(flaw(picture) == "");
    }
  }
}

// Two counted steps took 3 ms of matmul kernels and 0.9 ms of attention: 1.5 and 0.45 a step. The
// ops' own 1.5 ms of matmul, in forward alone, are drawn only where no device said anything.
TEST_CASE("a step's classes are the device's kernels where there are any, else the timed ops") {
  const auto segment = [](const BarChart& chart, const std::string& hint) {
    for (const BarSegment& part : chart.bars.front().segments) {
      if (part.hint == hint) return part.value;
    }
    return -1.0;
  };
  Report report{testing::sample_provenance(), {testing::sample_point("none")}, {}};
  const auto charts_of = [](const Report& drawn) {
    const std::vector<Comparison> comparisons = compare_policies(drawn);
    return class_time_charts(points_of_first(comparisons));
  };
  const std::vector<BarChart> of_kernels = charts_of(report);
  REQUIRE(of_kernels.size() == 1);
  CHECK(of_kernels.front().title == "Kernel time in forward, by class");
  CHECK(segment(of_kernels.front(), "attention: 450 us") == 450e3);
  CHECK(segment(of_kernels.front(), "matmul: 1.50 ms") == 1.5e6);

  report.points.front().kernels->invalid = "7 activity records were dropped";
  const std::vector<BarChart> of_ops = charts_of(report);
  REQUIRE(of_ops.size() == 1);
  CHECK(of_ops.front().title == "Op time in forward, by class");
  CHECK(segment(of_ops.front(), "matmul: 1.50 ms") == 1.5e6);
  CHECK(segment(of_ops.front(), "attention: 0 ns") == 0);

  report.points.front().time.reset();
  CHECK(charts_of(report).empty());
}

ForestChart forest_of(
    const std::vector<std::pair<double, std::optional<std::array<double, 2>>>>& rows) {
  ForestChart chart{"ratios", "ratio", {}};
  for (const auto& [ratio, interval] : rows) {
    chart.rows.push_back({{"row", "", "", "", Weight::kNormal}, ratio, interval, "unsure"});
  }
  return chart;
}

int num_arrows(const Picture& picture) {
  return static_cast<int>(
      std::count_if(picture.shapes.begin(), picture.shapes.end(), [](const Shape& shape) {
        const auto* path = std::get_if<Path>(&shape);
        return path != nullptr && path->corners.size() == 3;
      }));
}

// Labels below a plot have their middle at the tick, those beside it their end.
std::vector<double> numbers_on_axis(const Picture& picture, Anchor anchor) {
  std::vector<double> numbers;
  for (const Shape& shape : picture.shapes) {
    const auto* label = std::get_if<Label>(&shape);
    if (label == nullptr || label->fill != Paint::kMuted || label->anchor != anchor) continue;
    char* end = nullptr;
    const double number = std::strtod(label->text.c_str(), &end);
    if (end != label->text.c_str() && *end == 0) numbers.push_back(number);
  }
  return numbers;
}

TEST_CASE("an interval of a ratio that leaves the others behind ends in arrows, above 0") {
  for (const double width : {510.0, 332.0}) {
    const Picture picture = draw_forest(
        forest_of({{1.1, {{1.0, 1.2}}}, {1.3, {{1.2, 1.4}}}, {1.2, {{-10.0, 50.0}}}}), width);
    const std::vector<double> axis = numbers_on_axis(picture, Anchor::kMiddle);
    REQUIRE(axis.size() >= 2);
    CHECK(*std::min_element(axis.begin(), axis.end()) > 0);
    CHECK(*std::max_element(axis.begin(), axis.end()) < 2.5);
    CHECK(num_arrows(picture) == 2);
    CHECK(flaw(picture) == "");
  }
  // Usual intervals are whole, alone as well.
  CHECK(num_arrows(draw_forest(forest_of({{1.1, {{1.0, 1.2}}}, {1.3, {{1.1, 1.4}}}}), 510)) == 0);
  CHECK(num_arrows(draw_forest(forest_of({{1.3, {{1.1, 1.5}}}}), 510)) == 0);
  // No interval, and a count that went to nothing.
  CHECK(num_arrows(draw_forest(forest_of({{0.0, std::nullopt}, {1.0, std::nullopt}}), 510)) == 0);
}

// Medians of 4, 5 and 6 ms. An interval up to 25 ms ends in an arrow, and so does its lower end.
TEST_CASE("an interval of a step time that leaves the others behind does not set the axis") {
  using std::chrono::microseconds;
  Report report{testing::sample_provenance(), {}, {}};
  for (const int step : {4000, 5000, 6000}) {
    PointRecord point = testing::sample_point("first_n(" + std::to_string(step / 1000) + ")");
    point.memory->peak_allocated = Bytes{(10000 - step) << 10};
    point.time->step_median = microseconds(step);
    point.time->step_interval = {{microseconds(step - 200), microseconds(step + 200)}};
    report.points.push_back(point);
  }
  const auto draw = [&report] {
    const auto comparisons = compare_policies(report);
    return draw_front(points_of_first(comparisons), std::nullopt, 1078);
  };
  CHECK(num_arrows(draw()) == 0);
  report.points[1].time->step_interval = {{microseconds(100), microseconds(25000)}};
  const Picture picture = draw();
  CHECK(num_arrows(picture) == 2);
  const std::vector<double> times = numbers_on_axis(picture, Anchor::kEnd);
  REQUIRE_FALSE(times.empty());
  CHECK(*std::max_element(times.begin(), times.end()) < 9);
  CHECK(flaw(picture) == "");
}

// Peaks and times: a (100, 10), b (80, 12), c (90, 12): a and b are the front, b dominates c, and a
// twin of b is on it as well.
TEST_CASE("the front is what nothing dominates") {
  Report report{testing::sample_provenance(), {}, {}};
  const auto add = [&report](const char* policy, std::int64_t peak, int step) {
    PointRecord point = testing::sample_point(policy);
    point.memory->peak_allocated = Bytes{peak};
    point.time->step_median = std::chrono::nanoseconds(step);
    report.points.push_back(point);
  };
  add("a", 100, 10);
  add("b", 80, 12);
  add("c", 90, 12);
  add("twin", 80, 12);
  add("none", 100, 11);
  const auto comparisons = compare_policies(report);
  std::vector<bool> on_front;
  for (const ChartPoint& charted : points_of_first(comparisons)) {
    on_front.push_back(charted.on_front);
  }
  CHECK(on_front == std::vector<bool>{true, true, false, true, false});
}

TEST_CASE("of many points, baselines and the front are kept") {
  const Report report = testing::large_report(200);
  const auto comparisons = compare_policies(report);
  const std::vector<ChartPoint> all = points_of_first(comparisons);
  const std::vector<ChartPoint> chosen = most_telling(all, 60);
  CHECK(chosen.size() == 60);
  CHECK(chosen.front().policy == "none");
  const auto on_front = [](const ChartPoint& charted) { return charted.on_front; };
  CHECK(std::count_if(chosen.begin(), chosen.end(), on_front) ==
        std::count_if(all.begin(), all.end(), on_front));
}

TEST_CASE("bits, not values, make two losses one curve") {
  const Report report = telling_report();
  const auto kept = compare_policies(report);
  const std::vector<LossCurve> curves = loss_curves(points_of_first(kept));
  REQUIRE(curves.size() == 2);
  CHECK(curves[0].names.size() == 9);
  CHECK(curves[1].names == std::vector<std::string>{"save_mm"});
}

// Runs of none start at 5.67, 5.7, 5.71 and 5.74.
TEST_CASE(
    "the band of the loss is what runs of the reference differ by, without those that failed") {
  Report report = telling_report();
  report.repeats.push_back(report.repeats.front());
  report.repeats.back().status = PointStatus::kCrash;
  report.repeats.back().steps[0].loss = 99;
  const auto kept = compare_policies(report);
  const auto band = loss_band(points_of_first(kept));
  REQUIRE(band);
  CHECK(band->name == "none");
  CHECK(band->num_runs == 4);
  CHECK(band->widest() == Approx(0.07));
  CHECK(band->range.at(0)->at(0) == Approx(5.67));
  report.repeats[1].steps[3].loss.reset();
  CHECK_FALSE(loss_band(points_of_first(kept))->range.at(3));
  report.repeats.clear();
  CHECK_FALSE(loss_band(points_of_first(compare_policies(report))));
}

// The band is 0.07 wide and the losses fall from 5.7: the second panel's axis is that of the band.
TEST_CASE("losses that differ have a second panel of the difference to the reference") {
  const Report report = telling_report();
  const auto kept = compare_policies(report);
  const std::vector<ChartPoint> points = points_of_first(kept);
  const std::vector<LossCurve> curves = loss_curves(points);
  std::optional<LossBand> band = loss_band(points);
  const auto bands_of = [](const Picture& picture) {
    std::vector<double> heights;
    for (const Shape& shape : picture.shapes) {
      const auto* path = std::get_if<Path>(&shape);
      if (path != nullptr && path->fill == Paint::kGrid) heights.push_back(extent(shape).height());
    }
    return heights;
  };
  const Picture two = draw_losses(curves, band, 510);
  const std::vector<double> heights = bands_of(two);
  REQUIRE(heights.size() == 2);
  CHECK(heights[1] > 40);
  CHECK(has_label(two, "loss less that of none's first run"));

  // Equal bits everywhere, and a reference that repeats itself: there is nothing to see.
  for (auto& range : band->range) range = {{5, 5}};
  CHECK(bands_of(draw_losses({curves.front()}, band, 510)).size() == 1);
  CHECK_FALSE(
      has_label(draw_losses(curves, std::nullopt, 510), "loss less that of none's first run"));
}

// The same policy once more with another plan, 50 above: less the repeated run's own it is 50, and
// nothing is far below 0.
TEST_CASE("losses are held against the run that was repeated, not another of its name") {
  Report report = telling_report();
  PointRecord other = report.points.front();
  other.identity.plan_sha256 = "another plan";
  for (StepRecord& step : other.steps) {
    step.loss = *step.loss + 50;
    step.loss_bits += "50";
  }
  report.points.insert(report.points.begin(), other);
  const auto kept = compare_policies(report);
  const std::vector<ChartPoint> points = points_of_first(kept);
  const Picture picture = draw_losses(loss_curves(points), loss_band(points), 510);
  const std::vector<double> axes = numbers_on_axis(picture, Anchor::kEnd);
  CHECK(*std::min_element(axes.begin(), axes.end()) > -40);
}

TEST_CASE("a name that has room is not cut, in bold either") {
  for (const char* policy : {"none", "full"}) {
    const Report report{testing::sample_provenance(), {testing::sample_point(policy)}, {}, {}};
    const auto kept = compare_policies(report);
    const Picture picture = draw_bars(holder_chart(points_of_first(kept)), 500);
    CHECK(has_label(picture, policy));
  }
}

TEST_CASE("a label goes where nothing is, else nowhere") {
  const Box bounds{0, 0, 100, 100};
  const LabelRequest request{{50, 50}, 5, 20, 10};
  CHECK(place_labels({request}, {}, bounds)[0]->left == 55);
  // Right is taken, so it goes left; where all beside the point is taken, further right; where all
  // is taken it is left out.
  CHECK(place_labels({request}, {{54, 40, 100, 60}}, bounds)[0]->right == 45);
  CHECK(place_labels({request}, {{0, 0, 64, 100}}, bounds)[0]->left == 65);
  CHECK_FALSE(place_labels({request}, {bounds}, bounds)[0]);
}

TEST_CASE("a chart that a report cannot fill says what is missing") {
  Report report{testing::sample_provenance(), {testing::sample_oom("full")}, {}};
  const auto comparisons = compare_policies(report);
  for (const std::string& name : chart_names()) {
    CAPTURE(name);
    const auto drawn = draw_chart(name, comparisons.front(), report.provenance.environment);
    if (name == "holders") continue;  // the peak that was reached
    REQUIRE(std::holds_alternative<Rejected>(drawn));
    CHECK_THAT(std::get<Rejected>(drawn).message, Catch::StartsWith("the report has no "));
  }
  const auto unknown = draw_chart("frnt", comparisons.front(), report.provenance.environment);
  CHECK_THAT(std::get<Rejected>(unknown).message, Catch::Contains("did you mean 'front'"));
}

}  // namespace rematch
