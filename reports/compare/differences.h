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

// Returns the differences that make the times of two reports incomparable, such as another device
// or another version. Clocks count as different if they are more than 5 % apart, or if one of them
// is unknown.
std::vector<NamedDifference> environment_differences(const Provenance& base,
                                                     const Provenance& candidate);

// Collects environment differences for every pair of compared points. Each point of a merged report
// has its own provenance.
class PointEnvironments {
 public:
  PointEnvironments(const Report& base, const Report& candidate);

  // Returns the environment differences between two points, one from each report.
  const std::vector<NamedDifference>& between(const PointRecord& base,
                                              const PointRecord& candidate);
  // Returns the differences of all pairs that were passed to between(), with each name once. If
  // neither report is merged, compares the provenances of the two reports.
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

// Returns the members that differ, in the identity's order. They explain why two points were not
// paired. Never lists the plan, because points with different plans may be paired.
std::vector<NamedDifference> identity_differences(const PointIdentity& base,
                                                  const PointIdentity& candidate);

// Finds the points of one report that are similar to a point of another report.
class SimilarPoints {
 public:
  void add(const PointRecord& point);

  // Returns the point of the same policy and model whose identity has the fewest differences; the
  // first of them if there are several. Null if there is no point of this policy and model.
  const PointRecord* nearest(const PointRecord& point) const;

 private:
  std::map<std::pair<std::string, std::string>, std::vector<const PointRecord*>> points_;
};

// Returns the JSON names of fields that differ although no metric shows the difference, such as
// "memory.after_forward_bytes". Names are in the record's order. Skips fields that need not repeat
// exactly, fields in bytes if the peak differs, and fields about ops if a count differs.
std::vector<std::string> other_differences(const PointRecord& base, const PointRecord& candidate,
                                           const ComparedRow& row);

}  // namespace rematch
