// A report's points sorted into comparisons: points that differ in policy and schedule alone stand
// against each other, and each knows the reference it is held against.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "reports/record/report.h"
#include "reports/render/verdict.h"

namespace rematch {

// Pointers are into the report, which must outlive this.
struct ComparedPoint {
  const PointRecord* point = nullptr;
  const PointRecord* none = nullptr;  // same schedule if there is one, else any; null: not in it
  const PointRecord* full = nullptr;  // same schedule only
  std::vector<const RepeatRecord*> repeats;  // runs of this point that finished
  Verdict verdict;
  std::string schedule;      // empty: the policy is there once, so its name is enough
  bool is_on_front = false;  // no other finished point is as good in peak and time, better in one
  // Another finished point has no higher peak and is faster by more than the noise of both.
  bool is_dominated = false;

  bool is_baseline() const { return point->policy == "none" || point->policy == "full"; }
  std::string name() const;  // "full on_demand"
  // Several lines: the plan, what it recomputes, peak, step time and verdict.
  std::string hint() const;
};

struct Comparison {
  std::string title;  // "wan_small on cpu: batch 1, dim 256, ...; float32, adamw, seed 1"
  std::vector<ComparedPoint> points;  // in the report's order
};

// "full on_demand"
std::string name_of(const PointRecord& point);

std::vector<Comparison> compare_policies(const Report& report);

// Baselines first, then the front, then the rest.
int rank_of(const ComparedPoint& compared);

// At most `limit` points, those of lowest rank, in the order of `points`.
std::vector<ComparedPoint> most_telling(const std::vector<ComparedPoint>& points,
                                        std::size_t limit);

// Figures of a finished point.
std::optional<Bytes> measured_peak(const PointRecord& record);
std::optional<std::chrono::nanoseconds> measured_step(const PointRecord& record);

}  // namespace rematch
