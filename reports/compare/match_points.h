// Which point of one report is which of another.
#pragma once

#include <vector>

#include "reports/record/report.h"

namespace rematch {

struct PointPair {
  const PointRecord* base = nullptr;  // of the reports, which must outlive this
  const PointRecord* candidate = nullptr;
};

struct MatchedPoints {
  std::vector<PointPair> pairs;    // in the base's order
  std::vector<PointPair> missing;  // in the base alone
  std::vector<PointPair> extra;    // in the candidate alone
};

// Points of one policy with one key; then, of those left, points of one policy whose keys differ in
// the plan's hash alone: what the policy does has changed. A merged report may have one point of
// several environments: those of equal environments pair first.
MatchedPoints match_points(const Report& base, const Report& candidate);

}  // namespace rematch
