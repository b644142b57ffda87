#include "reports/render/charts/point.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "reports/render/format.h"

namespace rematch::chart {
namespace {

// No higher peak, and less time by intervals that do not meet. A ratio of paired rounds decides
// where `point` was held against `other`.
bool surely_beats(const Point& other, const Point& point) {
  if (*measured_peak(other.record()) > *measured_peak(point.record())) return false;
  const TimeRecord& slower = *point.record().time;
  const TimeRecord& faster = *other.record().time;
  if (slower.ratio && slower.ratio->reference == other.policy && !slower.ratio->verdict.empty()) {
    return slower.ratio->verdict == "slower";
  }
  if (!faster.step_interval || !slower.step_interval) {
    return *faster.step_median < *slower.step_median;
  }
  return (*faster.step_interval)[1] < (*slower.step_interval)[0];
}

// By peak, then by time: a point is on the front if it is faster than every one before it. Equal
// ones are on it together.
void mark_front(std::vector<Point>& points) {
  const auto figures = [](const Point* point) {
    return std::pair(*measured_peak(point->record()), *measured_step(point->record()));
  };
  std::vector<Point*> measured;
  for (Point& point : points) {
    if (measured_peak(point.record()) && measured_step(point.record())) measured.push_back(&point);
  }
  std::stable_sort(measured.begin(), measured.end(),
                   [&](const Point* a, const Point* b) { return figures(a) < figures(b); });
  const Point* last = nullptr;
  for (Point* point : measured) {
    point->is_on_front = last == nullptr || figures(point) == figures(last) ||
                         figures(point).second < figures(last).second;
    if (point->is_on_front) last = point;
  }
  for (Point* point : measured) {
    point->is_dominated = !point->is_on_front &&
                          std::any_of(measured.begin(), measured.end(), [&](const Point* other) {
                            return surely_beats(*other, *point);
                          });
  }
}

std::string recomputed_ops(const CountsRecord& counts) {
  std::string text;
  for (const auto& [op_class, count] :
       counts.by_class[static_cast<std::size_t>(Phase::kRecompute)]) {
    if (op_class == OpClass::kView || count == 0) continue;
    text += (text.empty() ? "recomputes in a step: " : ", ") +
            format_per_step(count, counts.counted_steps) + " " + std::string(to_string(op_class));
  }
  return text.empty() ? "recomputes nothing" : text;
}

}  // namespace

std::string Point::name() const { return schedule.empty() ? policy : policy + " " + schedule; }

std::string Point::hint() const {
  std::string text = policy + ", " + std::string(to_string(record().identity.schedule)) +
                     "\nplan " + record().identity.plan_sha256.substr(0, 12);
  if (record().counts) text += "\n" + recomputed_ops(*record().counts);
  if (const auto& memory = record().memory; memory && memory->peak_allocated) {
    text += "\npeak " + format_bytes(*memory->peak_allocated);
    if (memory->peak_phase) text += " in " + describe_place(*memory);
    if (memory->predicted_peak_allocated) {
      text += ", predicted " + format_bytes(*memory->predicted_peak_allocated);
    }
  }
  if (const auto& time = record().time; time && time->step_median) {
    text += "\nstep " + format_duration(*time->step_median);
    if (time->step_interval) {
      text += ", 95 % interval " + format_duration((*time->step_interval)[0]) + " to " +
              format_duration((*time->step_interval)[1]);
    }
  }
  return text + "\n" + compared->verdict.text;
}

std::vector<Point> points_of(const Comparison& comparison) {
  std::map<std::string, int> num_spelled;
  for (const ComparedPoint& compared : comparison.points) ++num_spelled[compared.point->policy];
  std::vector<Point> points;
  for (const ComparedPoint& compared : comparison.points) {
    Point point{&compared, compared.point->policy};
    if (num_spelled[point.policy] > 1) point.schedule = to_string(point.record().identity.schedule);
    point.is_baseline = point.policy == "none" || point.policy == "full";
    points.push_back(std::move(point));
  }
  mark_front(points);
  return points;
}

int rank_of(const Point& point) { return point.is_baseline ? 0 : point.is_on_front ? 1 : 2; }

std::vector<Point> most_telling(const std::vector<Point>& points, std::size_t limit) {
  std::vector<std::size_t> order(points.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&points](std::size_t a, std::size_t b) {
    return rank_of(points[a]) < rank_of(points[b]);
  });
  order.resize(std::min(limit, order.size()));
  std::sort(order.begin(), order.end());
  std::vector<Point> chosen;
  for (const std::size_t index : order) chosen.push_back(points[index]);
  return chosen;
}

}  // namespace rematch::chart
