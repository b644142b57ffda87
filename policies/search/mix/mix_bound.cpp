// Computes the lower bound that layer_mix.h declares. Uses the same recursion as mix_layers(), but
// replaces every front by its convex hull, which is never above the front.
#include <algorithm>
#include <cmath>

#include "policies/search/mix/layer_mix.h"
#include "policies/search/mix/mix_jobs.h"

namespace rematch {
namespace {

using Curve = std::vector<BoundCorner>;

// Returns whether point b lies on or above the line from a to c.
bool is_above(const BoundCorner& a, const BoundCorner& b, const BoundCorner& c) {
  return (b.time_ns - a.time_ns) * (c.peak_bytes - a.peak_bytes) >=
         (c.time_ns - a.time_ns) * (b.peak_bytes - a.peak_bytes);
}

// Returns the lower left part of the convex hull, where times descend.
Curve hull_of(Curve points) {
  std::sort(points.begin(), points.end(), [](const BoundCorner& a, const BoundCorner& b) {
    return a.peak_bytes != b.peak_bytes ? a.peak_bytes < b.peak_bytes : a.time_ns < b.time_ns;
  });
  Curve hull;
  for (const BoundCorner& point : points) {
    if (!hull.empty() && point.time_ns >= hull.back().time_ns) continue;
    while (hull.size() >= 2 && is_above(hull[hull.size() - 2], hull.back(), point)) hull.pop_back();
    hull.push_back(point);
  }
  return hull;
}

double value_at(const Curve& curve, double peak) {
  const auto after = std::upper_bound(
      curve.begin(), curve.end(), peak,
      [](double bytes, const BoundCorner& corner) { return bytes < corner.peak_bytes; });
  if (after == curve.begin()) return curve.front().time_ns;
  if (after == curve.end()) return curve.back().time_ns;
  const BoundCorner& before = *(after - 1);
  const double share = (peak - before.peak_bytes) / (after->peak_bytes - before.peak_bytes);
  return before.time_ns + share * (after->time_ns - before.time_ns);
}

void prepend(const MixJob& job, const Curve& rest, Curve& points) {
  const auto held = static_cast<double>(job.held);
  const auto transient = static_cast<double>(job.transient);
  const auto time = static_cast<double>(job.time);
  if (transient >= rest.front().peak_bytes + held) {
    points.push_back({transient, value_at(rest, transient - held) + time});
  }
  for (const BoundCorner& corner : rest) {
    if (corner.peak_bytes + held >= transient) {
      points.push_back({corner.peak_bytes + held, corner.time_ns + time});
    }
  }
}

}  // namespace

std::vector<BoundCorner> mix_lower_bound(const MixProblem& problem) {
  const int num_layers = static_cast<int>(problem.list_of_layer.size());
  std::vector<Curve> curves(num_layers + 1);
  curves[num_layers] = {{static_cast<double>(problem.head.count), 0}};
  for (int layer = num_layers - 1; layer >= 0; --layer) {
    Curve points;
    for (const MixJob& job : jobs_at(problem, layer)) {
      prepend(job, curves[layer + job.num_layers], points);
    }
    curves[layer] = hull_of(std::move(points));
  }
  Curve& whole = curves[0];
  const auto floor = static_cast<double>(problem.floor.count);
  if (floor > whole.front().peak_bytes) {
    const BoundCorner at_floor = {floor, value_at(whole, floor)};
    std::erase_if(whole, [&](const BoundCorner& corner) { return corner.peak_bytes <= floor; });
    whole.insert(whole.begin(), at_floor);
  }
  return whole;
}

std::chrono::nanoseconds bound_at(const std::vector<BoundCorner>& bound, Bytes peak) {
  return std::chrono::nanoseconds(
      static_cast<std::int64_t>(std::floor(value_at(bound, static_cast<double>(peak.count)))));
}

std::vector<std::size_t> hull_options(const std::vector<LayerOption>& options) {
  std::vector<bool> chosen(options.size(), false);
  for (const auto measure : {&LayerOption::held, &LayerOption::transient}) {
    Curve points;
    for (const LayerOption& option : options) {
      points.push_back({static_cast<double>((option.*measure).count) / option.num_layers,
                        static_cast<double>(option.time.count()) / option.num_layers});
    }
    for (const BoundCorner& corner : hull_of(points)) {
      for (std::size_t i = 0; i < points.size(); ++i) {
        if (points[i].peak_bytes == corner.peak_bytes && points[i].time_ns == corner.time_ns) {
          chosen[i] = true;
        }
      }
    }
  }
  std::vector<std::size_t> kept;
  for (std::size_t i = 0; i < options.size(); ++i) {
    if (chosen[i]) kept.push_back(i);
  }
  return kept;
}

}  // namespace rematch
