#include "policies/search/front/hypervolume.h"

#include <algorithm>
#include <optional>
#include <set>

namespace rematch {

double hypervolume_ratio(std::vector<PlanePoint> points, PlanePoint reference) {
  std::sort(points.begin(), points.end(), [](const PlanePoint& a, const PlanePoint& b) {
    return a.peak_bytes != b.peak_bytes ? a.peak_bytes < b.peak_bytes : a.time_ns < b.time_ns;
  });
  double area = 0;
  std::int64_t time = reference.time_ns;  // the lowest time of the points so far
  for (const PlanePoint& point : points) {
    if (point.peak_bytes >= reference.peak_bytes || point.time_ns >= time) continue;
    area += static_cast<double>(reference.peak_bytes - point.peak_bytes) *
            static_cast<double>(time - point.time_ns);
    time = point.time_ns;
  }
  return area /
         (static_cast<double>(reference.peak_bytes) * static_cast<double>(reference.time_ns));
}

std::vector<std::size_t> spread_points(const std::vector<PlanePoint>& front,
                                       std::size_t max_points) {
  std::set<std::size_t> chosen;
  if (!front.empty()) chosen = {0, front.size() - 1};
  while (chosen.size() < std::min(max_points, front.size())) {
    std::size_t best = front.size();
    std::optional<double> most;
    for (auto left = chosen.begin(), right = std::next(left); right != chosen.end();
         ++left, ++right) {
      for (std::size_t i = *left + 1; i < *right; ++i) {
        const double gain = static_cast<double>(front[*right].peak_bytes - front[i].peak_bytes) *
                            static_cast<double>(front[*left].time_ns - front[i].time_ns);
        if (!most || gain > *most) {
          most = gain;
          best = i;
        }
      }
    }
    chosen.insert(best);
  }
  return {chosen.begin(), chosen.end()};
}

std::size_t knee_of(const std::vector<PlanePoint>& front) {
  const auto bytes = static_cast<double>(front.back().peak_bytes - front.front().peak_bytes);
  const auto time = static_cast<double>(front.front().time_ns - front.back().time_ns);
  std::size_t knee = 0;
  double farthest = 0;
  for (std::size_t i = 0; i < front.size() && bytes > 0 && time > 0; ++i) {
    const double x = static_cast<double>(front[i].peak_bytes - front.front().peak_bytes) / bytes;
    const double y = static_cast<double>(front[i].time_ns - front.back().time_ns) / time;
    if (1 - x - y > farthest) {
      farthest = 1 - x - y;
      knee = i;
    }
  }
  return knee;
}

}  // namespace rematch
