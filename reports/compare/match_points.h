// Pairs the points of two reports.
#pragma once

#include <vector>

#include "reports/record/report.h"

namespace rematch {

struct PointPair {
  // both pointers refer to elements of the reports, which must outlive this object
  const PointRecord* base = nullptr;
  const PointRecord* candidate = nullptr;
};

struct MatchedPoints {
  std::vector<PointPair> pairs;    // pairs, in the order of the base's points
  std::vector<PointPair> missing;  // points that only the base has
  std::vector<PointPair> extra;    // points that only the candidate has
};

// Pairs points with the same policy and key. Then pairs the remaining points of one policy whose
// keys differ only in the plan's hash, which means that the policy's plan has changed. A merged
// report may have the same point from several environments. In that case points of equal
// environments are paired first.
MatchedPoints match_points(const Report& base, const Report& candidate);

}  // namespace rematch
