// Merges several reports into one: shards of a run, or single points. The result does not depend on
// the order of the files. Merging reports that are merged already gives the same result as merging
// all of their parts. Pure.
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
// All copies must agree in everything that repeats exactly (ops, bytes, bits). One copy is kept,
// with its own times. If one copy ended ok and another did not (out of memory, time-out, crash,
// skipped), the ok copy is kept. Returns Rejected if no report is given or if two copies disagree.
std::variant<MergedReport, Rejected, FingerprintsDiffer> merge_reports(
    std::vector<Report> reports, MixedEnvironments mixed, PointOrder order = PointOrder::kPlanned);

// Returns a provenance with only the members that are equal for all commands. There must be at
// least one command; the map's keys distinguish the commands. Two members are kept even if they
// differ: the seed becomes the lowest seed, and the command lines that reproduce the figures are
// joined by "&&".
Provenance provenance_in_common(const std::map<std::string, Provenance>& provenances);

}  // namespace rematch
