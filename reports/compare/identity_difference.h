// Why a point has no partner: what sets it apart from the point of the other report that is most
// like it.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "reports/record/compare.h"
#include "reports/record/point.h"

namespace rematch {

// In the order of the identity; the plan is left out, since another plan is no reason not to pair.
std::vector<NamedDifference> identity_differences(const PointIdentity& base,
                                                  const PointIdentity& candidate);

// The points of one report.
class SimilarPoints {
 public:
  void add(const PointRecord& point);

  // The one of the same policy and model that differs in the fewest parts of its identity, the
  // first of several; null: there is none.
  const PointRecord* nearest(const PointRecord& point) const;

 private:
  std::map<std::pair<std::string, std::string>, std::vector<const PointRecord*>> points_;
};

}  // namespace rematch
