#include "reports/render/charts/search_marks.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "policies/search/measured_front.h"

namespace rematch {
namespace {

using std::chrono::nanoseconds;

double as_number(Bytes bytes) { return static_cast<double>(bytes.count); }
double as_number(nanoseconds time) { return static_cast<double>(time.count()); }

bool is_measured(const FrontPoint& point) {
  return point.measured && point.measured->peak && point.measured->step_time;
}

}  // namespace

nanoseconds predicted_step(const Front& front, const FrontPoint& point) {
  if (point.measured && point.measured->calibrated_step_time) {
    return *point.measured->calibrated_step_time;
  }
  if (!front.measurement) return point.step_time;
  const StepCalibration line{front.measurement->offset_ns, front.measurement->slope};
  return nanoseconds(std::llround(std::max(0.0, line.at(as_number(point.step_time)))));
}

std::array<nanoseconds, 2> measured_interval(const MeasuredFigures& measured) {
  return measured.step_interval.value_or(std::array{*measured.step_time, *measured.step_time});
}

StepInterval step_interval(const MeasuredFigures& measured) {
  const auto [low, high] = measured_interval(measured);
  return {as_number(low), as_number(*measured.step_time), as_number(high)};
}

std::vector<PlanMark> list_marks(const FrontRecord& record, const std::vector<std::size_t>& shown) {
  const Front& front = record.front;
  std::vector<PlanMark> marks;
  const auto add = [&](PlanOwner owner, const FrontPoint& point, const std::string& name) {
    PlanMark mark;
    mark.owner = owner;
    mark.point = &point;
    mark.name = name;
    marks.push_back(std::move(mark));
  };
  for (const Baseline& baseline : front.baselines) {
    add(PlanOwner::kBaseline, baseline.point, baseline.point.plan.policy);
  }
  for (const std::size_t index : shown) {
    const FrontPoint& point = front.points[index];
    add(PlanOwner::kFront, point, std::to_string(index));
    marks.back().is_corner = index == 0 || index == front.knee ||
                             index + 1 == front.points.size() ||
                             (record.answer && record.answer->figures.peak == point.figures.peak);
  }
  return marks;
}

PlaneRange peaks_of(const std::vector<PlanMark>& marks) {
  PlaneRange peaks;
  for (const PlanMark& mark : marks) {
    peaks.include(as_number(mark.point->figures.peak));
    if (is_measured(*mark.point)) peaks.include(as_number(*mark.point->measured->peak));
  }
  return peaks;
}

PlaneRange steps_of(const Front& front, const std::vector<PlanMark>& marks) {
  PlaneRange steps;
  std::vector<StepInterval> intervals;
  for (const PlanMark& mark : marks) {
    steps.include(as_number(predicted_step(front, *mark.point)));
    if (!is_measured(*mark.point)) continue;
    steps.include(as_number(*mark.point->measured->step_time));
    intervals.push_back(step_interval(*mark.point->measured));
  }
  include_intervals(steps, intervals);
  return steps;
}

void place_marks(const Front& front, const Plane& plane, std::vector<PlanMark>& marks) {
  for (PlanMark& mark : marks) {
    const FrontPoint& point = *mark.point;
    mark.predicted = {plane.x(as_number(point.figures.peak)),
                      plane.y(as_number(predicted_step(front, point)))};
    if (!is_measured(point)) continue;
    const double x = plane.x(as_number(*point.measured->peak));
    mark.measured = Position{x, plane.y(as_number(*point.measured->step_time))};
  }
}

}  // namespace rematch
