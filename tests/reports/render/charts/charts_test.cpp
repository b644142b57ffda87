// Checks every chart for random figures: coordinates must be finite and inside the picture, and
// texts must not overlap.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

#include "policies/base/rejected.h"
#include "reports/render/charts/builders.h"
#include "reports/render/charts/chart.h"
#include "reports/render/charts/names.h"
#include "tests/reports/render/sample_comparisons.h"
#include "tests/reports/sample_report.h"
#include "tests/support/catch.h"
#include "tests/support/seeds.h"

namespace rematch::chart {
namespace {

using testing::random_report;
using testing::representative_report;

bool is_finite(const Box& box) {
  return std::isfinite(box.left) && std::isfinite(box.top) && std::isfinite(box.right) &&
         std::isfinite(box.bottom);
}

// Returns the part of a text's box that the letters cover.
Box core(const Box& box) { return {box.left + 0.5, box.top + 2, box.right - 0.5, box.bottom - 2}; }

// Returns a description of the picture's first layout problem, or "". `growth` scales the size of
// text.
std::string flaw(const Picture& picture, double growth) {
  std::vector<std::pair<Box, std::string>> labels;
  std::vector<Box> strokes;
  for (const Shape& shape : picture.shapes) {
    for (const Box& box : covered_by(shape, growth)) strokes.push_back(box);
  }
  const Box frame{-0.6, -0.6, picture.width + 0.6, picture.height + 0.6};
  for (const Shape& shape : picture.shapes) {
    const auto* label = std::get_if<Label>(&shape);
    const Box box = extent(shape, growth);
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

std::string flaw(const Picture& picture) {
  const std::string found = flaw(picture, 1);
  return found.empty() && picture.growth != 1 ? flaw(picture, picture.growth) : found;
}

std::vector<Picture> every_chart(const Report& report) {
  std::vector<Picture> pictures;
  for (const PolicyComparison& comparison : compare_policies(report)) {
    const std::vector<ComparedPoint>& points = comparison.points;
    pictures.push_back(
        draw(measured_front(points, memory_limit(comparison, report.provenance.environment))));
    std::vector<Rows> charts = class_times(points);
    for (const OpClass op_class : {OpClass::kAttentionForward, OpClass::kMatmul}) {
      charts.push_back(op_counts(points, op_class));
    }
    for (const auto& build : {peak_holders, phase_times, step_ratios}) {
      charts.push_back(build(points));
    }
    for (const Rows& chart : charts) pictures.push_back(draw(chart));
    for (const auto& build : {losses, memory_timelines}) pictures.push_back(draw(build(points)));
  }
  return pictures;
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

bool has_label(const Picture& picture, const std::string& text) {
  return !shapes_of<Label>(picture, [&](const Label& label) { return label.text == text; }).empty();
}

TEST_CASE("charts of any figures are finite, inside their pictures, and legible", "[property]") {
  for (std::uint32_t seed = 0; seed < testing::num_seeds(60); ++seed) {
    for (const Picture& picture : every_chart(random_report(seed))) {
      CAPTURE(seed, picture.title);
      CHECK(flaw(picture) == "");
    }
  }
}

TEST_CASE("the charts of a representative report are well formed") {
  for (const Picture& picture : every_chart(representative_report())) {
    CAPTURE(picture.title);
    CHECK(flaw(picture) == "");
  }
}

// Two counted steps have 3 ms of matmul kernels and 0.9 ms of attention kernels: 1.5 and 0.45 ms
// per step. Op times are drawn only if no kernels were recorded.
TEST_CASE(
    "a step's time is drawn by kernel class if kernels were recorded, and by op class otherwise") {
  const auto segment = [](const Rows& chart, const std::string& hint) {
    for (const Segment& part : chart.rows.front().segments) {
      if (part.hint == hint) return part.value;
    }
    return -1.0;
  };
  Report report{testing::sample_provenance(), {testing::sample_point("none")}, {}};
  const auto charts_of = [](const Report& drawn) {
    const std::vector<PolicyComparison> comparisons = compare_policies(drawn);
    return class_times(comparisons.front().points);
  };
  const std::vector<Rows> of_kernels = charts_of(report);
  REQUIRE(of_kernels.size() == 1);
  CHECK(of_kernels.front().title == "Kernel time in forward, by class");
  CHECK(segment(of_kernels.front(), "attention: 450 us") == 450e3);
  CHECK(segment(of_kernels.front(), "matmul: 1.50 ms") == 1.5e6);

  report.points.front().kernels->invalid = "7 activity records were dropped";
  const std::vector<Rows> of_ops = charts_of(report);
  REQUIRE(of_ops.size() == 1);
  CHECK(of_ops.front().title == "Op time in forward, by class");
  CHECK(segment(of_ops.front(), "matmul: 1.50 ms") == 1.5e6);
  CHECK(segment(of_ops.front(), "attention: 0 ns") == 0);

  report.points.front().time.reset();
  CHECK(charts_of(report).empty());
}

Rows ratios_of(const std::vector<std::pair<double, std::optional<std::array<double, 2>>>>& rows) {
  Rows chart{"ratios", "", "ratio", Quantity::kRatio};
  for (const auto& [ratio, interval] : rows) {
    chart.rows.push_back({"row", "", "", "", false, {}, Dot{ratio, interval}});
  }
  return chart;
}

std::size_t num_arrows(const Picture& picture) {
  return shapes_of<Path>(picture, [](const Path& path) { return path.corners.size() == 3; }).size();
}

// Labels below a plot are centred on their ticks. Labels to the left of a plot are right-aligned at
// their ticks.
std::vector<double> numbers_on_axis(const Picture& picture, Anchor anchor) {
  std::vector<double> numbers;
  for (const Label& label : shapes_of<Label>(picture, [&](const Label& one) {
         return one.fill == Paint::kMuted && one.anchor == anchor;
       })) {
    char* end = nullptr;
    const double number = std::strtod(label.text.c_str(), &end);
    if (end != label.text.c_str() && *end == 0) numbers.push_back(number);
  }
  return numbers;
}

TEST_CASE("an outlying interval of a ratio ends in arrows, and the axis stays above 0") {
  const Picture picture =
      draw(ratios_of({{1.1, {{1.0, 1.2}}}, {1.3, {{1.2, 1.4}}}, {1.2, {{-10.0, 50.0}}}}));
  const std::vector<double> axis = numbers_on_axis(picture, Anchor::kMiddle);
  REQUIRE(axis.size() >= 2);
  CHECK(*std::min_element(axis.begin(), axis.end()) > 0);
  CHECK(*std::max_element(axis.begin(), axis.end()) < 2.5);
  CHECK(num_arrows(picture) == 2);
  CHECK(flaw(picture) == "");
  // An interval of usual length is drawn whole, even if it is the only one.
  CHECK(num_arrows(draw(ratios_of({{1.1, {{1.0, 1.2}}}, {1.3, {{1.1, 1.4}}}}))) == 0);
  CHECK(num_arrows(draw(ratios_of({{1.3, {{1.1, 1.5}}}}))) == 0);
  // Without intervals, no arrow is drawn, even for a ratio of 0.
  CHECK(num_arrows(draw(ratios_of({{0.0, std::nullopt}, {1.0, std::nullopt}}))) == 0);
}

// The medians are 4, 5 and 6 ms. An interval from 0.1 to 25 ms is cut off at both ends of the axis,
// with an arrow at each end.
TEST_CASE("an outlying interval of a step time does not extend the axis") {
  using std::chrono::microseconds;
  Report report{testing::sample_provenance(), {}, {}};
  for (const int step : {4000, 5000, 6000}) {
    PointRecord point = testing::sample_point("first_n(" + std::to_string(step / 1000) + ")");
    point.memory->peak_allocated = Bytes{(10000 - step) << 10};
    point.time->step_median = microseconds(step);
    point.time->step_interval = {{microseconds(step - 200), microseconds(step + 200)}};
    report.points.push_back(point);
  }
  const auto draw_report = [&report] {
    const auto comparisons = compare_policies(report);
    return draw(measured_front(comparisons.front().points, std::nullopt));
  };
  CHECK(num_arrows(draw_report()) == 0);
  report.points[1].time->step_interval = {{microseconds(100), microseconds(25000)}};
  const Picture picture = draw_report();
  CHECK(num_arrows(picture) == 2);
  const std::vector<double> times = numbers_on_axis(picture, Anchor::kEnd);
  REQUIRE_FALSE(times.empty());
  CHECK(*std::max_element(times.begin(), times.end()) < 9);
  CHECK(flaw(picture) == "");
}

// Points are given as (peak, time). Points a (100, 10), b (80, 12) and b's twin are on the front. c
// (90, 12) and none (100, 11) are dominated.
TEST_CASE("the front consists of the points that no other point dominates") {
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
  for (const ComparedPoint& point : comparisons.front().points)
    on_front.push_back(point.is_on_front);
  CHECK(on_front == std::vector<bool>{true, true, false, true, false});
}

// All points have the same peak. Their times are 10 ms in [9, 12], 11 ms in [10, 13] and 20 ms in
// [18, 22].
TEST_CASE("a point is dominated only if it is slower by more than the noise") {
  Report report{testing::sample_provenance(), {}, {}};
  const auto add = [&report](const char* policy, int step, int low, int high) {
    PointRecord point = testing::sample_point(policy);
    point.time->step_median = std::chrono::milliseconds(step);
    point.time->step_interval = {{std::chrono::milliseconds(low), std::chrono::milliseconds(high)}};
    point.time->ratio.reset();
    report.points.push_back(point);
  };
  add("full", 10, 9, 12);
  add("none", 11, 10, 13);
  add("root", 20, 18, 22);
  const auto comparisons = compare_policies(report);
  const std::vector<ComparedPoint> points = comparisons.front().points;
  CHECK(points[0].is_on_front);
  CHECK_FALSE(points[1].is_on_front);
  CHECK_FALSE(points[1].is_dominated);
  CHECK(points[2].is_dominated);
  const Plane plane = measured_front(points, std::nullopt);
  CHECK(plane.spots[1].paint == Paint::kTeal);
  CHECK(plane.spots[2].paint == Paint::kGrey);
  CHECK(std::any_of(plane.legend.begin(), plane.legend.end(), [](const Key& key) {
    return key.text == "Unsure: equally fast within noise";
  }));
}

TEST_CASE("only baselines and the front are drawn if there are many points") {
  const Report report = testing::large_report(200);
  const auto comparisons = compare_policies(report);
  const std::vector<ComparedPoint> all = comparisons.front().points;
  const std::vector<ComparedPoint> chosen = most_telling(all, 60);
  CHECK(chosen.size() == 60);
  CHECK(chosen.front().point->policy == "none");
  const auto is_on_front = [](const ComparedPoint& point) { return point.is_on_front; };
  CHECK(std::count_if(chosen.begin(), chosen.end(), is_on_front) ==
        std::count_if(all.begin(), all.end(), is_on_front));
}

// A name that does not fit beside its marker is in the legend.
TEST_CASE("each name in the picture of a front is complete, even on a narrow screen") {
  const Report report = representative_report();
  for (const PolicyComparison& comparison : compare_policies(report)) {
    const std::vector<ComparedPoint> points = comparison.points;
    const Picture picture = draw(measured_front(points, std::nullopt));
    for (const ComparedPoint& point : points) {
      if (!measured_peak(*point.point) || !measured_step(*point.point)) continue;
      CAPTURE(point.name());
      const bool is_in_legend = std::any_of(
          picture.legend.begin(), picture.legend.end(),
          [&](const Key& key) { return key.text.find(point.point->policy) != std::string::npos; });
      CHECK((is_in_legend || has_label(picture, point.point->policy)));
    }
  }
}

// Most points have nearly the same position, so only some names fit beside their markers. The other
// markers have a letter, and the legend gives the name for each letter. Points whose letter does
// not fit share a neighbour's letter.
TEST_CASE("every point of a front is named beside its marker or in the legend") {
  Plane plane{"crowded"};
  for (int index = 0; index < 12; ++index) {
    Spot spot;
    spot.measured = Position{1e6 * (100 + index), 1e6 * (100 - index)};
    spot.name = "a_policy_with_a_long_name(" + std::to_string(10 + index) + ")";
    plane.spots.push_back(spot);
  }
  plane.spots.front().measured = Position{9e8, 1e9};  // all other points are close together
  const Picture picture = draw(plane);
  CHECK(flaw(picture) == "");
  std::size_t num_letters = 0;
  for (const Spot& spot : plane.spots) {
    CAPTURE(spot.name);
    const auto entry =
        std::find_if(picture.legend.begin(), picture.legend.end(),
                     [&](const Key& key) { return key.text.find(spot.name) != std::string::npos; });
    if (entry == picture.legend.end()) {
      CHECK(has_label(picture, spot.name));
      continue;
    }
    ++num_letters;
    CHECK(has_label(picture, entry->symbol));
  }
  CHECK(num_letters >= 3);
}

TEST_CASE("runs share a loss curve only if the bits of their losses are equal") {
  const Report report = representative_report();
  const auto kept = compare_policies(report);
  const Lines chart = losses(kept.front().points);
  CHECK(chart.panels.at(0).curves.size() == 2);
  CHECK(chart.legend.at(0).text == "none and 8 others with the same bits");
  CHECK(chart.legend.at(1).text == "save_mm");
}

// The losses of the runs of `none` start at 5.67, 5.7, 5.71 and 5.74.
TEST_CASE("the band of losses covers all runs of the reference that did not fail") {
  Report report = representative_report();
  report.repeats.push_back(report.repeats.front());
  report.repeats.back().status = PointStatus::kCrash;
  report.repeats.back().steps[0].loss = 99;
  const auto kept = compare_policies(report);
  const auto drawn = [&] { return losses(kept.front().points); };
  CHECK(drawn().legend.back().text == "4 runs of none, which differ by 0.07 at most");
  const std::vector<Area> areas = drawn().panels.at(0).areas;
  REQUIRE(areas.size() == 1);
  CHECK(areas[0].corners.front().y == Approx(5.74));
  CHECK(areas[0].corners.back().y == Approx(5.67));
  report.repeats[1].steps[3].loss.reset();
  // one area before the missing loss, and one after it
  CHECK(drawn().panels.at(0).areas.size() == 2);
  report.repeats.clear();
  const auto without = compare_policies(report);
  CHECK(losses(without.front().points).panels.at(0).areas.empty());
}

// Repeated runs of the reference differ by only 0.07, while losses fall from 5.7. The second panel
// must have a finer axis to show this band.
TEST_CASE("if losses differ, a second panel shows the difference from the reference") {
  Report report = representative_report();
  const auto drawn = [&report] {
    const auto kept = compare_policies(report);
    return losses(kept.front().points);
  };
  const Picture two = draw(drawn());
  const auto bands =
      shapes_of<Path>(two, [](const Path& path) { return path.fill == Paint::kGrid; });
  REQUIRE(bands.size() == 2);
  CHECK(extent(bands[1]).height() > 40);
  CHECK(has_label(two, "Loss minus the loss of none's first run"));

  // All losses are now bitwise equal, so there is no difference to show.
  std::erase_if(report.points, [](const PointRecord& point) { return point.policy == "save_mm"; });
  for (RepeatRecord& repeat : report.repeats) repeat.steps = report.points.front().steps;
  CHECK(drawn().panels.size() == 1);
  CHECK(drawn().panels.front().areas.size() == 1);
  report = representative_report();
  report.repeats.clear();
  CHECK(drawn().panels.size() == 1);
}

// Another point has the reference's policy with another plan, and its losses are 50 higher.
// Differences from this point would be far below 0.
TEST_CASE(
    "losses are compared with the run that was repeated, even if another run has the same policy") {
  Report report = representative_report();
  PointRecord other = report.points.front();
  other.identity.plan_sha256 = "another plan";
  for (StepRecord& step : other.steps) {
    step.loss = *step.loss + 50;
    step.loss_bits += "50";
  }
  report.points.insert(report.points.begin(), other);
  const auto kept = compare_policies(report);
  const std::vector<double> axes = numbers_on_axis(draw(losses(kept.front().points)), Anchor::kEnd);
  CHECK(*std::min_element(axes.begin(), axes.end()) > -40);
}

TEST_CASE("all panels of the memory chart have the same axis and mark their peaks") {
  const Report report = representative_report();
  const auto kept = compare_policies(report);
  const Lines chart = memory_timelines(kept.front().points);
  REQUIRE(chart.panels.size() == 10);  // all points except the point that ran out of memory
  double highest = 0;
  for (const Panel& panel : chart.panels) {
    REQUIRE(panel.peak);
    CHECK(panel.at_least == chart.panels.front().at_least);
    CHECK(panel.areas.size() == 6);
    highest = std::max(highest, panel.peak->at.y);
  }
  CHECK(highest == chart.panels.front().at_least);
}

TEST_CASE("a bold name is not cut if it fits") {
  for (const char* policy : {"none", "full"}) {
    const Report report{testing::sample_provenance(), {testing::sample_point(policy)}, {}, {}};
    const auto kept = compare_policies(report);
    CHECK(has_label(draw(peak_holders(kept.front().points)), policy));
  }
}

TEST_CASE("a label is placed in free space or left out") {
  const Box bounds{0, 0, 100, 100};
  const auto place = [&](const std::vector<Box>& obstacles) {
    const auto label = place_label(Label{{}, "abc"}, {50, 50}, 5, 1, obstacles, bounds);
    return label ? std::optional(extent(*label)) : std::nullopt;
  };
  CHECK(place({})->left == 55);
  // The label is placed to the left if there is no room to the right. If there is no room near the
  // point, the label is moved further right. If there is no room at all, it is left out.
  CHECK(place({{54, 40, 100, 60}})->right == Approx(45));
  CHECK(place({{0, 0, 64, 100}})->left == 65);
  CHECK_FALSE(place({bounds}));
}

TEST_CASE("a chart without data says what the report lacks") {
  Report report{testing::sample_provenance(), {testing::sample_oom("full")}, {}};
  const auto comparisons = compare_policies(report);
  for (const std::string& name : chart_names()) {
    CAPTURE(name);
    const auto drawn = draw_chart(name, comparisons.front(), report.provenance.environment);
    if (name == "holders") continue;  // this chart shows the peak before the failure
    REQUIRE(std::holds_alternative<Rejected>(drawn));
    CHECK_THAT(std::get<Rejected>(drawn).message, Catch::StartsWith("the report has no "));
  }
  const auto unknown = draw_chart("frnt", comparisons.front(), report.provenance.environment);
  CHECK_THAT(std::get<Rejected>(unknown).message, Catch::Contains("did you mean 'front'"));
}

}  // namespace
}  // namespace rematch::chart
