#include <set>
#include <string>
#include <utility>

#include "reports/record/report.h"

namespace rematch {

std::variant<Report, Rejected> merge_points(const std::vector<PointFile>& files) {
  if (files.empty()) return Rejected{"no points to merge; a report needs at least one"};
  Report report;
  report.provenance = files.front().provenance;
  report.unknown = files.front().unknown;
  const std::string machine = fingerprint(report.provenance.environment);
  // Two policies may resolve to one plan, and then share a key.
  std::set<std::pair<std::string, std::string>> seen;
  for (const PointFile& file : files) {
    if (fingerprint(file.provenance.environment) != machine) {
      return Rejected{"point " + file.point.policy + " was measured in another environment than " +
                      files.front().point.policy +
                      " (their fingerprints differ); merge one environment at a time"};
    }
    const std::string key = point_key(file.point.identity);
    if (!seen.emplace(key, file.point.policy).second) {
      return Rejected{"two points of policy " + file.point.policy + " have the key " + key +
                      "; keep one of them"};
    }
    report.points.push_back(file.point);
  }
  return report;
}

}  // namespace rematch
