#include "policies/search/front/measured_front.h"

#include <algorithm>
#include <array>
#include <variant>

#include "policies/catalogue/catalogue.h"
#include "policies/catalogue/resolve.h"
#include "policies/search/front/front_search.h"
#include "tests/support/catch.h"
#include "tests/support/made_up_profile.h"
#include "tests/support/toy_trace.h"

namespace rematch {
namespace {

using std::chrono::nanoseconds;

Front predicted_front(const std::string& policies) {
  const Trace trace = testing::toy_llama({.layers = 4, .tokens = 64});
  const Profile profile = testing::made_up_profile(trace, 1);
  std::vector<Plan> baselines;
  const auto parsed = parse_policies(policies);
  for (const Policy& policy : std::get<std::vector<Policy>>(parsed)) {
    baselines.push_back(std::get<Plan>(resolve(policy, trace)));
  }
  FrontSearch search(trace, profile, {});
  return search.front(8, baselines);
}

// Simulates a device on which every step takes 1000 ns plus twice the profile's time.
void run_all(Front& front) {
  const auto run = [](FrontPoint& point) {
    point.measured.emplace();
    point.measured->peak = point.figures.peak;
    point.measured->step_time = nanoseconds(1000) + 2 * point.step_time;
  };
  for (FrontPoint& point : front.points) run(point);
  for (Baseline& baseline : front.baselines) run(baseline.point);
}

std::vector<std::size_t> anchors_of(const Front& front) {
  std::vector<PlanePoint> plane;
  for (const FrontPoint& point : front.points) {
    plane.push_back({point.figures.peak.count, point.step_time.count()});
  }
  return choose_anchors(plane);
}

TEST_CASE("both ends and the knee of a front are measured first") {
  CHECK(choose_anchors({{10, 100}, {12, 60}, {20, 30}, {40, 22}, {100, 10}}) ==
        std::vector<std::size_t>{0, 2, 4});
  // A straight line has no knee, so the middle is chosen.
  CHECK(choose_anchors({{10, 50}, {20, 40}, {30, 30}, {40, 20}, {50, 10}}) ==
        std::vector<std::size_t>{0, 2, 4});
  CHECK(choose_anchors({{10, 50}, {20, 40}}) == std::vector<std::size_t>{0, 1});
}

// After the first three points, two are left to choose from. (40, 22) adds the larger area, (100 -
// 40) * (30 - 22) = 480, but its time differs from the time of the knee (20, 30) by only 8. (12,
// 60) adds (20 - 12) * (100 - 60) = 320, and its time differs by 30.
TEST_CASE(
    "the next point to measure is chosen by its area and by its distance in time from measured "
    "points") {
  const std::vector<PlanePoint> front = {{10, 100}, {12, 60}, {20, 30}, {40, 22}, {100, 10}};
  CHECK(choose_measured(front, 3) == std::vector<std::size_t>{0, 2, 4});
  CHECK(choose_measured(front, 4) == std::vector<std::size_t>{0, 1, 2, 4});
  CHECK(choose_measured(front, 5) == std::vector<std::size_t>{0, 1, 2, 3, 4});
  CHECK(choose_measured(front, 99) == std::vector<std::size_t>{0, 1, 2, 3, 4});
}

TEST_CASE("calibration fits a line, or only a scale if the anchors show no line") {
  const StepCalibration line = calibrate({100, 110, 130}, {205, 225, 265});
  CHECK(line.slope == Approx(2));
  CHECK(line.offset_ns == Approx(5));
  const StepCalibration close = calibrate({1000, 1001, 1002}, {3000, 2900, 3100});
  CHECK(close.offset_ns == 0);
  CHECK(close.slope == Approx(3000.0 / 1001));
  const StepCalibration falling = calibrate({100, 200}, {400, 200});
  CHECK(falling.offset_ns == 0);
  CHECK(falling.slope == Approx(2));
}

TEST_CASE("calibration leaves no error if measured times are linear in the profile's times") {
  Front front = predicted_front("full,save_mm,nth_first(2)");
  run_all(front);
  weigh_measurement(front, anchors_of(front), std::array<double, 2>{0.99, 1.01});
  const FrontMeasurement& measurement = *front.measurement;
  CHECK(measurement.line.slope == Approx(2));
  CHECK(measurement.line.offset_ns == Approx(1000).margin(1));
  CHECK(measurement.num_measured == static_cast<int>(front.points.size() + 3));
  CHECK(measurement.num_equal_peaks == measurement.num_measured);
  REQUIRE(measurement.worst_error_ratio);
  CHECK(*measurement.worst_error_ratio < 1e-6);
  CHECK_FALSE(measurement.is_behind_in_prediction());
  CHECK_FALSE(measurement.is_behind_when_measured());
  CHECK(measurement.families.size() == 3);
  for (const FrontPoint& point : front.points) CHECK(point.measured->lost_to.empty());
}

TEST_CASE("errors are computed without the points used for calibration") {
  Front front = predicted_front("full,save_mm");
  run_all(front);
  const std::vector<std::size_t> anchors = anchors_of(front);
  std::size_t other = 0;
  while (std::find(anchors.begin(), anchors.end(), other) != anchors.end()) ++other;
  MeasuredFigures& slow = *front.points[other].measured;
  slow.step_time = *slow.step_time * 2;
  slow.peak = *slow.peak + Bytes{1};
  weigh_measurement(front, anchors, {});
  // the prediction is half of the measured time
  CHECK(*front.measurement->worst_error_ratio == Approx(0.5));
  CHECK(front.measurement->num_equal_peaks == front.measurement->num_measured - 1);
  for (const std::size_t anchor : anchors) CHECK(front.points[anchor].measured->is_anchor);
  CHECK_FALSE(slow.is_anchor);
}

TEST_CASE("a measured point loses to another only if the difference exceeds the noise") {
  Front front = predicted_front("full");
  run_all(front);
  MeasuredFigures& loser = *front.points[2].measured;
  // point 2 loses to point 1, which is faster and has a lower peak
  const nanoseconds rival = *front.points[1].measured->step_time;
  loser.step_time = rival + rival / 20;  // 5 % slower than point 1
  weigh_measurement(front, anchors_of(front), std::array<double, 2>{0.98, 1.01});
  CHECK(front.points[2].measured->lost_to == front.points[1].plan.policy);
  weigh_measurement(front, anchors_of(front), std::array<double, 2>{0.98, 1.06});
  CHECK(front.points[2].measured->lost_to.empty());
}

TEST_CASE(
    "a measured front is behind a baseline only if the gap exceeds the variation of the control") {
  Front front = predicted_front("save_mm");
  run_all(front);
  FrontPoint& baseline = front.baselines[0].point;
  // The baseline takes less time than any point, and has the lowest peak.
  baseline.measured->peak = Bytes{front.points[0].measured->peak->count - 1};
  baseline.measured->step_time = *front.points.back().measured->step_time - nanoseconds(1);
  weigh_measurement(front, anchors_of(front), std::array<double, 2>{1, 1});
  CHECK(front.measurement->is_behind_when_measured());
  CHECK(front.measurement->families[0].measured > front.measurement->measured_hypervolume);
  // The control varies by a factor of 2, so the baseline may be slower than every point.
  weigh_measurement(front, anchors_of(front), std::array<double, 2>{1, 2});
  CHECK_FALSE(front.measurement->is_behind_when_measured());
}

TEST_CASE("a failed run has a status and does not count in the figures") {
  Front front = predicted_front("full");
  run_all(front);
  const std::vector<std::size_t> anchors = anchors_of(front);
  weigh_measurement(front, anchors, {});
  const double of_all = front.measurement->measured_hypervolume.value();
  front.points[1].measured = MeasuredFigures{};
  front.points[1].measured->status = "oom";
  front.points[1].measured->reason = "no memory";
  weigh_measurement(front, anchors, {});
  CHECK(front.measurement->num_measured == static_cast<int>(front.points.size()));
  CHECK(front.measurement->measured_hypervolume < of_all);
  CHECK(front.points[1].measured->lost_to.empty());
}

TEST_CASE("a policy's family does not depend on its arguments") {
  CHECK(family_of("nth_first(2)") == "nth_first");
  CHECK(family_of("none") == "none");
}

}  // namespace
}  // namespace rematch
