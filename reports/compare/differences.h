// Finds the differences between two reports, or between two points of two reports.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "reports/record/compare.h"
#include "reports/record/point.h"
#include "reports/record/point_origins.h"
#include "reports/record/report.h"

namespace rematch {

// Returns the differences that make two reports' times incomparable, such as another device, other
// clocks or other versions. Compares every member of the fingerprint, the kind of execution, the
// variables that change bits or bytes, and the clocks. Clocks differ if they are more than 5 %
// apart, or if the clock of one side is unknown. An empty list means that the times are comparable.
std::vector<NamedDifference> environment_differences(const Provenance& base,
                                                     const Provenance& candidate);

// Collects environment differences for every pair of compared points. Compares the provenances of
// single points, because the provenance of a merged report holds only what all its points have in
// common.
class PointEnvironments {
 public:
  PointEnvironments(const Report& base, const Report& candidate);

  // Returns the environment differences between two points, one from each report.
  const std::vector<NamedDifference>& between(const PointRecord& base,
                                              const PointRecord& candidate);
  // Returns the differences of all pairs that were passed to between(), with each name once. If
  // neither report is merged, compares the provenances of the two reports instead.
  std::vector<NamedDifference> all() const;

 private:
  using Pair = std::pair<const Provenance*, const Provenance*>;
  PointOrigins base_;
  PointOrigins candidate_;
  std::map<Pair, std::vector<NamedDifference>> known_;
};

SourceRecord describe_source(const Provenance& provenance, const std::string& file);

// Returns text such as "libtorch_version 2.11.0 and 2.12.0, threads 2 and 4".
std::string describe(const std::vector<NamedDifference>& differences);

// Returns the identity's members that differ, in the identity's order. These differences explain
// why a point was not paired. The plan is never listed, because points are paired even if their
// plans differ.
std::vector<NamedDifference> identity_differences(const PointIdentity& base,
                                                  const PointIdentity& candidate);

// Finds the points of one report that are similar to a point of another report.
class SimilarPoints {
 public:
  void add(const PointRecord& point);

  // Returns the point of the same policy and model whose identity has the fewest differences. Ties
  // go to the first point. Null if no point has this policy and model.
  const PointRecord* nearest(const PointRecord& point) const;

 private:
  std::map<std::pair<std::string, std::string>, std::vector<const PointRecord*>> points_;
};

// Returns the JSON names of fields that differ although no metric shows the difference, such as
// "memory.after_forward_bytes". Names are in the record's order. Compares only fields that repeat
// exactly, have no metric and do not depend on other processes. If the peak differs, skips fields
// in bytes, and if a count differs, skips fields about ops, because the row's metrics already show
// that difference.
std::vector<std::string> other_differences(const PointRecord& base, const PointRecord& candidate,
                                           const ComparedRow& row);

}  // namespace rematch
