// In what two reports, or two points of them, differ.
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

// Differences that make two reports' times incomparable: another device, other clocks, other
// versions.

// Everything that the fingerprint covers, the kind of execution, variables that change bits or
// bytes, and clocks that differ by more than a twentieth or that one side does not know. Empty:
// comparable.
std::vector<NamedDifference> environment_differences(const Provenance& base,
                                                     const Provenance& candidate);

// The same of every two points that are held against each other: reports that were merged say less
// of themselves than of their points. Each name once.
class PointEnvironments {
 public:
  PointEnvironments(const Report& base, const Report& candidate);

  // Differences of two points, one of each report.
  const std::vector<NamedDifference>& between(const PointRecord& base,
                                              const PointRecord& candidate);
  // For all points asked for so far; where neither report is merged, for the reports.
  std::vector<NamedDifference> all() const;

 private:
  using Pair = std::pair<const Provenance*, const Provenance*>;
  PointOrigins base_;
  PointOrigins candidate_;
  std::map<Pair, std::vector<NamedDifference>> known_;
};

SourceRecord describe_source(const Provenance& provenance, const std::string& file);

// "libtorch_version 2.11.0 and 2.12.0, threads 2 and 4".
std::string describe(const std::vector<NamedDifference>& differences);

// Why a point has no partner: what sets it apart from the point of the other report that is most
// like it.

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

// Facts of two points that repeat exactly and that no metric covers: so that "no difference" is
// said only where there is none. Times, and bytes that other processes move, are no such facts.

// The JSON names of those that differ, "memory.after_forward_bytes", in the order of the record.
// Left out is what follows from a difference that the row's metrics show: of bytes where a peak
// differs, of ops where a count does.
std::vector<std::string> other_differences(const PointRecord& base, const PointRecord& candidate,
                                           const ComparedRow& row);

}  // namespace rematch
