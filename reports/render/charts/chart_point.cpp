#include "reports/render/charts/chart_point.h"

#include <algorithm>
#include <map>

#include "reports/render/format.h"
#include "reports/render/verdict.h"

namespace rematch {
namespace {

// By peak, then by time: a point is on the front if it is faster than every one before it. Equal
// ones are on it together.
void mark_front(std::vector<ChartPoint>& points) {
  std::vector<ChartPoint*> measured;
  for (ChartPoint& charted : points) {
    if (measured_peak(charted.point()) && measured_step(charted.point())) {
      measured.push_back(&charted);
    }
  }
  const auto peak = [](const ChartPoint* charted) { return *measured_peak(charted->point()); };
  const auto step = [](const ChartPoint* charted) { return *measured_step(charted->point()); };
  std::stable_sort(measured.begin(), measured.end(), [&](const ChartPoint* a, const ChartPoint* b) {
    return peak(a) != peak(b) ? peak(a) < peak(b) : step(a) < step(b);
  });
  const ChartPoint* last = nullptr;
  for (ChartPoint* charted : measured) {
    const bool equal =
        last != nullptr && peak(last) == peak(charted) && step(last) == step(charted);
    charted->on_front = last == nullptr || equal || step(charted) < step(last);
    if (charted->on_front) last = charted;
  }
}

std::string recomputed_ops(const PointRecord& point) {
  if (!point.counts) return "";
  std::string text;
  for (const auto& [op_class, count] :
       point.counts->by_class[static_cast<std::size_t>(Phase::kRecompute)]) {
    if (op_class == OpClass::kView || count == 0) continue;
    text += (text.empty() ? "recomputes a step: " : ", ") +
            format_per_step(count, point.counts->counted_steps) + " " +
            std::string(to_string(op_class));
  }
  return text.empty() ? "recomputes nothing" : text;
}

}  // namespace

std::vector<ChartPoint> chart_points_of(const Comparison& comparison) {
  std::map<std::string, int> spelled;
  for (const ComparedPoint& compared : comparison.points) ++spelled[compared.point->policy];
  std::vector<ChartPoint> points;
  for (const ComparedPoint& compared : comparison.points) {
    const PointRecord& point = *compared.point;
    ChartPoint charted;
    charted.compared = &compared;
    charted.policy = point.policy;
    if (spelled[point.policy] > 1) charted.schedule = to_string(point.identity.schedule);
    charted.baseline = point.policy == "none" || point.policy == "full";
    points.push_back(std::move(charted));
  }
  mark_front(points);
  return points;
}

std::vector<ChartPoint> most_telling(const std::vector<ChartPoint>& points, std::size_t limit) {
  if (points.size() <= limit) return points;
  std::vector<std::size_t> order(points.size());
  for (std::size_t index = 0; index < order.size(); ++index) order[index] = index;
  const auto rank = [&points](std::size_t index) {
    return points[index].baseline ? 0 : points[index].on_front ? 1 : 2;
  };
  std::stable_sort(order.begin(), order.end(),
                   [&rank](std::size_t a, std::size_t b) { return rank(a) < rank(b); });
  order.resize(limit);
  std::sort(order.begin(), order.end());
  std::vector<ChartPoint> chosen;
  for (const std::size_t index : order) chosen.push_back(points[index]);
  return chosen;
}

std::string name_of(const ChartPoint& charted) {
  return charted.schedule.empty() ? charted.policy : charted.policy + " " + charted.schedule;
}

std::optional<double> measured_peak(const PointRecord& point) {
  if (point.status != PointStatus::kOk || !point.memory || !point.memory->peak_allocated) {
    return std::nullopt;
  }
  return static_cast<double>(point.memory->peak_allocated->count);
}

std::optional<double> measured_step(const PointRecord& point) {
  if (point.status != PointStatus::kOk || !point.time || !point.time->step_median) {
    return std::nullopt;
  }
  return static_cast<double>(point.time->step_median->count());
}

std::string describe_chart_point(const ChartPoint& charted) {
  const PointRecord& point = charted.point();
  std::string text = point.policy + ", " + std::string(to_string(point.identity.schedule)) +
                     "\nplan " + point.identity.plan_sha256.substr(0, 12);
  const std::string recomputed = recomputed_ops(point);
  if (!recomputed.empty()) text += "\n" + recomputed;
  if (point.memory && point.memory->peak_allocated) {
    text += "\npeak " + format_bytes(*point.memory->peak_allocated);
    if (point.memory->peak_phase) text += " in " + describe_place(*point.memory);
    if (point.memory->predicted_peak_allocated) {
      text += ", predicted " + format_bytes(*point.memory->predicted_peak_allocated);
    }
  }
  if (point.time && point.time->step_median) {
    text += "\nstep " + format_duration(*point.time->step_median);
    if (point.time->step_interval) {
      text += ", 95 % within " + format_duration((*point.time->step_interval)[0]) + " to " +
              format_duration((*point.time->step_interval)[1]);
    }
  }
  return text + "\n" + charted.compared->verdict.text;
}

}  // namespace rematch
