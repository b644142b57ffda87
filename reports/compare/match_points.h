// Pairs the points of two reports.
#pragma once

#include <vector>

#include "reports/record/report.h"

namespace rematch {

struct PointPair {
  // both point to elements of the reports, which must outlive this object
  const PointRecord* base = nullptr;
  const PointRecord* candidate = nullptr;
};

struct MatchedPoints {
  std::vector<PointPair> pairs;    // pairs, in the order of the base's points
  std::vector<PointPair> missing;  // points that only the base has
  std::vector<PointPair> extra;    // points that only the candidate has
};

// Pairs points with the same policy and key. Then pairs points of the same policy whose keys differ
// only in the plan's hash. If a merged report has the same point from several environments, points
// from equal environments are paired first.
MatchedPoints match_points(const Report& base, const Report& candidate);

}  // namespace rematch
