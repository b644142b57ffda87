// Differences that make two reports' times incomparable: another device, other clocks, other
// versions.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "reports/record/compare.h"
#include "reports/record/point_origins.h"
#include "reports/record/report.h"

namespace rematch {

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

}  // namespace rematch
