// Groups a report's points into comparisons, whose points differ only in policy and schedule. Each
// point has pointers to the points of policies `none` and `full`.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "reports/record/report.h"
#include "reports/render/verdict.h"

namespace rematch {

// The pointers point into the report, which must outlive this object.
struct ComparedPoint {
  const PointRecord* point = nullptr;
  // The point of policy `none`. If there are several, the point with the same schedule. Null if the
  // report has no such point.
  const PointRecord* none = nullptr;
  // The point of policy `full` with the same schedule. Null if the report has no such point.
  const PointRecord* full = nullptr;
  std::vector<const RepeatRecord*> repeats;  // repeated runs of this point that finished
  Verdict verdict;
  std::string schedule;  // empty if the policy occurs only once
  // True if no other point is at least as good in both peak and time, and better in one of them.
  bool is_on_front = false;
  // True if another finished point has no higher peak and is faster by more than noise.
  bool is_dominated = false;

  bool is_baseline() const { return point->policy == "none" || point->policy == "full"; }
  std::string name() const;  // a name such as "full on_demand"
  // Returns several lines: the plan, what it recomputes, peak, step time and verdict.
  std::string hint() const;
};

struct PolicyComparison {
  std::string title;  // such as "wan_small on cpu: batch 1, dim 256, ...; float32, adamw, seed 1"
  std::vector<ComparedPoint> points;  // in the order of the report
};

// Returns text such as "full on_demand".
std::string name_of(const PointRecord& point);

std::vector<PolicyComparison> compare_policies(const Report& report);

// Ranks baselines first, then points of the front, then all other points.
int rank_of(const ComparedPoint& compared);

// Returns the `limit` points with the lowest rank, in the order of `points`.
std::vector<ComparedPoint> most_telling(const std::vector<ComparedPoint>& points,
                                        std::size_t limit);

// Figures of a finished point; absent if the point did not finish.
std::optional<Bytes> measured_peak(const PointRecord& record);
std::optional<std::chrono::nanoseconds> measured_step(const PointRecord& record);

}  // namespace rematch
