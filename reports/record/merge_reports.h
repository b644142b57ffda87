// Merges several reports into one: shards of a run, or single points. Neither the order of the
// files nor merging in several stages changes the result.
#pragma once

#include <map>
#include <string>
#include <variant>
#include <vector>

#include "policies/base/rejected.h"
#include "reports/record/report.h"

namespace rematch {

enum class MixedEnvironments { kRefuse, kKeepApart };

// kPlanned sorts points in the order that the shards planned. kGiven keeps the order of the given
// reports.
enum class PointOrder { kPlanned, kGiven };

// Returned if the reports come from machines or builds whose figures must not be compared.
struct FingerprintsDiffer {
  std::string message;
};

struct MergedReport {
  Report report;
  std::vector<PlannedPoint> missing;  // points that a shard planned but that no report contains
  std::vector<std::string> notes;     // one line for each point that several reports measured
};

// A point may appear in several reports of one environment, because each shard runs the reference.
// Its copies must have the same ops, bytes and bits, and one copy is kept. A copy that ended ok
// replaces a copy that ran out of memory, timed out, crashed or was skipped. Returns Rejected if no
// report is given or if two copies disagree.
std::variant<MergedReport, Rejected, FingerprintsDiffer> merge_reports(
    std::vector<Report> reports, MixedEnvironments mixed, PointOrder order = PointOrder::kPlanned);

// Returns a provenance with the members that are equal in all `provenances`. If seeds differ, keeps
// the lowest. If command lines differ, joins them by "&&". `provenances` must not be empty.
Provenance provenance_in_common(const std::map<std::string, Provenance>& provenances);

}  // namespace rematch
