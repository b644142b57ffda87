// The points of a comparison as charts see them: what each is called, whether it is on the front,
// and which of many are worth a row.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reports/render/comparison.h"

namespace rematch {

// Points into the comparison, which must outlive it.
struct ChartPoint {
  const ComparedPoint* compared = nullptr;
  std::string policy;
  std::string schedule;   // empty: the policy is there once, so its name is enough
  bool on_front = false;  // no other finished point has at most its peak and its step time
  bool baseline = false;  // none and full

  const PointRecord& point() const { return *compared->point; }
};

std::vector<ChartPoint> chart_points_of(const Comparison& comparison);

// At most `limit` of them, in the same order: baselines first, then the front, then the rest.
std::vector<ChartPoint> most_telling(const std::vector<ChartPoint>& points, std::size_t limit);

std::string name_of(const ChartPoint& charted);  // "full on_demand"

// Of a finished point: what a step's front needs.
std::optional<double> measured_peak(const PointRecord& point);  // bytes
std::optional<double> measured_step(const PointRecord& point);  // nanoseconds

// Several lines: the plan, what it recomputes, peak, step time and verdict.
std::string describe_chart_point(const ChartPoint& charted);

}  // namespace rematch
