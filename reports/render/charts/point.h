// The points of a comparison as charts show them: the name of each, whether it is on the front, and
// which of many points a chart with limited room shows.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "reports/render/comparison.h"

namespace rematch::chart {

// Points into the comparison, which must outlive it.
struct Point {
  const ComparedPoint* compared = nullptr;
  std::string policy;
  std::string schedule;  // empty: the policy is there once, so its name is enough
  bool is_on_front =
      false;  // no other finished point is as good in peak and step time and better in one
  // Another finished point has no higher peak and is faster by more than the noise of both.
  bool is_dominated = false;
  bool is_baseline = false;  // none and full

  const PointRecord& record() const { return *compared->point; }
  std::string name() const;  // "full on_demand"
  // Several lines: the plan, what it recomputes, peak, step time and verdict.
  std::string hint() const;
};

std::vector<Point> points_of(const Comparison& comparison);

// Baselines first, then the front, then the rest.
int rank_of(const Point& point);

// At most `limit` points, those of lowest rank, in the order of `points`.
std::vector<Point> most_telling(const std::vector<Point>& points, std::size_t limit);

}  // namespace rematch::chart
