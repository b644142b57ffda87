#include "policies/search/front/measured_front.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

namespace rematch {
namespace {

using std::chrono::nanoseconds;

// Each measured time has an error of a few percent. A slope is therefore fitted only if the
// predicted times of the anchors differ by at least this ratio.
constexpr double kMinSpread = 0.05;

PlanePoint beyond(const std::vector<PlanePoint>& points) {
  PlanePoint reference;
  for (const PlanePoint& point : points) {
    reference.peak_bytes = std::max(reference.peak_bytes, point.peak_bytes + 1);
    reference.time_ns = std::max(reference.time_ns, point.time_ns + 1);
  }
  return reference;
}

std::int64_t distance_in_time(const std::vector<PlanePoint>& front,
                              const std::vector<std::size_t>& chosen, std::size_t index) {
  std::int64_t nearest = INT64_MAX;
  for (const std::size_t other : chosen) {
    nearest = std::min(nearest, std::abs(front[index].time_ns - front[other].time_ns));
  }
  return nearest;
}

double area_of(const std::vector<PlanePoint>& front, const std::vector<std::size_t>& chosen,
               PlanePoint reference) {
  std::vector<PlanePoint> points;
  for (const std::size_t index : chosen) points.push_back(front[index]);
  return hypervolume_ratio(std::move(points), reference);
}

// Chooses the next point to run, among the points that are not in `chosen`. See Note [Which points
// are run].
std::size_t next_choice(const std::vector<PlanePoint>& front,
                        const std::vector<std::size_t>& chosen, PlanePoint reference) {
  const double area = area_of(front, chosen, reference);
  std::size_t best = front.size();
  std::optional<std::pair<double, double>> most;
  for (std::size_t index = 0; index < front.size(); ++index) {
    if (std::find(chosen.begin(), chosen.end(), index) != chosen.end()) continue;
    std::vector<std::size_t> with = chosen;
    with.push_back(index);
    const double gain = area_of(front, with, reference) - area;
    const auto distance = static_cast<double>(distance_in_time(front, chosen, index));
    if (most && std::pair(gain * distance, gain) <= *most) continue;
    most = {gain * distance, gain};
    best = index;
  }
  return best;
}

}  // namespace

std::vector<std::size_t> choose_anchors(const std::vector<PlanePoint>& front) {
  if (front.size() <= 3) {
    std::vector<std::size_t> all;
    for (std::size_t index = 0; index < front.size(); ++index) all.push_back(index);
    return all;
  }
  const std::size_t last = front.size() - 1;
  const std::size_t knee = knee_of(front);
  return {0, knee == 0 || knee == last ? last / 2 : knee, last};
}

std::vector<std::size_t> choose_measured(const std::vector<PlanePoint>& front, std::size_t count) {
  std::vector<std::size_t> chosen = choose_anchors(front);
  const PlanePoint reference = beyond(front);
  while (chosen.size() < std::min(count, front.size())) {
    chosen.push_back(next_choice(front, chosen, reference));
  }
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

StepCalibration calibrate(const std::vector<double>& predicted_ns,
                          const std::vector<double>& measured_ns) {
  const auto count = static_cast<double>(predicted_ns.size());
  double mean_predicted = 0;
  double mean_measured = 0;
  for (std::size_t i = 0; i < predicted_ns.size(); ++i) {
    mean_predicted += predicted_ns[i] / count;
    mean_measured += measured_ns[i] / count;
  }
  double together = 0;
  double alone = 0;
  for (std::size_t i = 0; i < predicted_ns.size(); ++i) {
    together += (predicted_ns[i] - mean_predicted) * (measured_ns[i] - mean_measured);
    alone += (predicted_ns[i] - mean_predicted) * (predicted_ns[i] - mean_predicted);
  }
  const auto [least, most] = std::minmax_element(predicted_ns.begin(), predicted_ns.end());
  if (*most - *least < kMinSpread * *most || together <= 0) {
    return {0, mean_predicted > 0 ? mean_measured / mean_predicted : 1};
  }
  const double slope = together / alone;
  return {mean_measured - slope * mean_predicted, slope};
}

std::string family_of(const std::string& policy) { return policy.substr(0, policy.find('(')); }

bool FrontMeasurement::is_behind_in_prediction() const {
  return std::any_of(families.begin(), families.end(), [&](const MeasuredFamily& family) {
    return family.predicted > predicted_hypervolume;
  });
}

bool FrontMeasurement::is_behind_when_measured() const {
  return std::any_of(families.begin(), families.end(), [&](const MeasuredFamily& family) {
    return family.measured_beyond_noise && measured_hypervolume &&
           *family.measured_beyond_noise > *measured_hypervolume;
  });
}

namespace {

std::optional<PlanePoint> predicted_plane(const FrontPoint& point) {
  return PlanePoint{point.figures.peak.count, point.step_time.count()};
}

std::optional<PlanePoint> measured_plane(const FrontPoint& point) {
  if (!point.measured || !point.measured->peak || !point.measured->step_time) return std::nullopt;
  return PlanePoint{point.measured->peak->count, point.measured->step_time->count()};
}

std::vector<FrontPoint*> all_points(Front& front) {
  std::vector<FrontPoint*> all;
  for (FrontPoint& point : front.points) all.push_back(&point);
  for (Baseline& baseline : front.baselines) all.push_back(&baseline.point);
  return all;
}

// Returns the noise of the A/A control: how far its interval extends from 1. Two times that differ
// by a smaller ratio may be equal.
double strays(const std::optional<std::array<double, 2>>& control_interval) {
  if (!control_interval) return 0;
  return std::max({0.0, 1 - (*control_interval)[0], (*control_interval)[1] - 1});
}

StepCalibration calibrate_on(const Front& front, const std::vector<std::size_t>& anchors) {
  std::vector<double> predicted;
  std::vector<double> measured;
  for (const std::size_t index : anchors) {
    const FrontPoint& point = front.points[index];
    if (!point.measured || !point.measured->step_time) continue;
    predicted.push_back(static_cast<double>(point.step_time.count()));
    measured.push_back(static_cast<double>(point.measured->step_time->count()));
  }
  return predicted.empty() ? StepCalibration{} : calibrate(predicted, measured);
}

// Marks the points that have the same plan as an anchor.
void mark_anchors(Front& front, const std::vector<std::size_t>& anchors) {
  for (FrontPoint* point : all_points(front)) {
    if (!point->measured) continue;
    const std::string hash = plan_sha256(point->plan);
    point->measured->is_anchor = std::any_of(
        anchors.begin(), anchors.end(),
        [&](std::size_t index) { return plan_sha256(front.points[index].plan) == hash; });
  }
}

void add_errors(Front& front, FrontMeasurement& measurement) {
  std::vector<double> errors;
  for (FrontPoint* point : all_points(front)) {
    if (!point->measured || !point->measured->step_time) continue;
    MeasuredFigures& figures = *point->measured;
    ++measurement.num_measured;
    if (figures.peak == point->figures.peak) ++measurement.num_equal_peaks;
    const double calibrated = measurement.line.at(static_cast<double>(point->step_time.count()));
    figures.calibrated_step_time = nanoseconds(std::llround(std::max(calibrated, 0.0)));
    const auto measured = static_cast<double>(figures.step_time->count());
    if (!figures.is_anchor && measured > 0) errors.push_back(std::abs(calibrated / measured - 1));
  }
  if (errors.empty()) return;
  std::sort(errors.begin(), errors.end());
  const std::size_t middle = errors.size() / 2;
  measurement.median_error_ratio =
      errors.size() % 2 == 1 ? errors[middle] : (errors[middle - 1] + errors[middle]) / 2;
  measurement.worst_error_ratio = errors.back();
}

// Returns the fastest point whose peak is at most `peak_bytes`.
const FrontPoint* rival_of(const std::vector<FrontPoint*>& all, std::int64_t peak_bytes) {
  const FrontPoint* fastest = nullptr;
  for (const FrontPoint* other : all) {
    const auto plane = measured_plane(*other);
    if (!plane || plane->peak_bytes > peak_bytes) continue;
    if (fastest == nullptr || plane->time_ns < fastest->measured->step_time->count()) {
      fastest = other;
    }
  }
  return fastest;
}

void mark_losers(Front& front, double noise) {
  const std::vector<FrontPoint*> all = all_points(front);
  for (FrontPoint& point : front.points) {
    const auto own = measured_plane(point);
    if (!own) continue;
    const FrontPoint* rival = rival_of(all, own->peak_bytes);
    const auto time = static_cast<double>(rival->measured->step_time->count());
    const bool is_lost = time * (1 + noise) < static_cast<double>(own->time_ns);
    point.measured->lost_to = is_lost ? rival->plan.policy : "";
  }
}

// Hypervolumes below a common reference point.
struct Areas {
  double own = 0;  // area of the front's own points
  std::map<std::string, double> of_families;
};

// Returns nullopt if no point of the front was measured. `plane_of` returns a point's peak and
// time, or nullopt if the point was not measured. `noise` lengthens the times of baselines, but not
// the time of the reference point.
template <class PlaneOf>
std::optional<Areas> areas_of(const Front& front, const PlaneOf& plane_of, double noise = 0) {
  std::vector<PlanePoint> own;
  for (const FrontPoint& point : front.points) {
    if (const std::optional<PlanePoint> plane = plane_of(point)) own.push_back(*plane);
  }
  std::vector<PlanePoint> all = own;
  std::map<std::string, std::vector<PlanePoint>> families;
  for (const Baseline& baseline : front.baselines) {
    std::optional<PlanePoint> plane = plane_of(baseline.point);
    if (!plane) continue;
    all.push_back(*plane);
    plane->time_ns = std::llround(static_cast<double>(plane->time_ns) * (1 + noise));
    families[family_of(baseline.point.plan.policy)].push_back(*plane);
  }
  if (own.empty()) return std::nullopt;
  const PlanePoint reference = beyond(all);
  Areas areas{hypervolume_ratio(own, reference), {}};
  for (const auto& [family, points] : families) {
    areas.of_families[family] = hypervolume_ratio(points, reference);
  }
  return areas;
}

void add_measured_areas(const Front& front, double noise, FrontMeasurement& measurement) {
  const auto areas = areas_of(front, measured_plane);
  if (!areas) return;
  measurement.measured_hypervolume = areas->own;
  const auto beyond_noise = areas_of(front, measured_plane, noise);
  for (MeasuredFamily& family : measurement.families) {
    const auto found = areas->of_families.find(family.family);
    if (found == areas->of_families.end()) continue;
    family.measured = found->second;
    family.measured_beyond_noise = beyond_noise->of_families.at(family.family);
  }
}

}  // namespace

FrontMeasurement weigh_prediction(const Front& front) {
  FrontMeasurement measurement;
  measurement.chosen_by = kChoiceRule;
  const Areas areas = areas_of(front, predicted_plane).value();  // a front has at least one point
  measurement.predicted_hypervolume = areas.own;
  for (const auto& [family, area] : areas.of_families) {
    measurement.families.push_back({family, area, {}, {}});
  }
  return measurement;
}

void weigh_measurement(Front& front, const std::vector<std::size_t>& anchors,
                       std::optional<std::array<double, 2>> control_interval) {
  FrontMeasurement measurement = weigh_prediction(front);
  measurement.anchors = anchors;
  measurement.control_interval = control_interval;
  measurement.line = calibrate_on(front, anchors);
  mark_anchors(front, anchors);
  add_errors(front, measurement);
  const double noise = strays(control_interval);
  mark_losers(front, noise);
  add_measured_areas(front, noise, measurement);
  front.measurement = std::move(measurement);
  // updates the verdict, which now uses calibrated times
  if (!front.points.empty()) front.verdict = verdict_of(front);
}

}  // namespace rematch
