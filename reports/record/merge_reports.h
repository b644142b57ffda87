// Several reports as one: shards of a run, or single points. The same files give the same report
// in whatever order they come, and merging merged reports is merging their parts. Pure.
#pragma once

#include <map>
#include <string>
#include <variant>
#include <vector>

#include "policies/plan/plan.h"
#include "reports/record/report.h"

namespace rematch {

enum class MixedEnvironments { kRefuse, kKeepApart };

// As planned by the shards; or as they come, for reports whose order says it.
enum class PointOrder { kPlanned, kGiven };

// The reports come from machines or builds whose figures are not to stand side by side.
struct FingerprintsDiffer {
  std::string message;
};

struct MergedReport {
  Report report;
  std::vector<PlannedPoint> missing;  // planned by a shard and in none of them
  std::vector<std::string> notes;     // a line each: points that several reports measured
};

// A point that several reports of one environment measured - each shard runs the reference - must
// be the same in all that repeats exactly (ops, bytes, bits); one of them is kept, with its own
// times, and where one ended ok and another did not (out of memory, time-out, crash, skipped) the
// one that did. Rejected: none given, or two that differ there.
std::variant<MergedReport, Rejected, FingerprintsDiffer> merge_reports(
    std::vector<Report> reports, MixedEnvironments mixed, PointOrder order = PointOrder::kPlanned);

// The common part of several commands' provenances, by whatever tells them apart; one at least.
// Members that differ are absent, but for the seed, which is the lowest, and the lines that make
// the figures again, which are joined by "&&".
Provenance provenance_in_common(const std::map<std::string, Provenance>& provenances);

}  // namespace rematch
