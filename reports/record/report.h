// A report: points measured by one command on one machine. A point file holds one of them with the
// same provenance, so any set of point files makes a report.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "policies/base/record_fields.h"
#include "reports/record/environment.h"
#include "reports/record/point.h"

namespace rematch {

// Everything needed to reproduce a figure.
struct Provenance {
  Environment environment;
  std::vector<std::string> command;  // argv
  std::uint64_t seed = 0;
  std::optional<std::string> git_commit;  // of the tool; absent outside a checkout
  std::optional<bool> git_dirty;
  std::optional<std::string> tool_version;
  std::optional<std::string> program_sha256;  // of the binary: two builds with equal bytes are one
  std::string reproduce;                      // the line to type
  std::string execution = "eager";
};

// All but the environment's fingerprint, which files hold beside it.
template <RecordOf<Provenance> AProvenance, class Visit>
void visit_fields(AProvenance& provenance, Visit visit) {
  visit("environment", provenance.environment);
  visit("command", provenance.command);
  visit("seed", provenance.seed);
  visit("tool_version", provenance.tool_version);
  visit({"program_sha256", kLater}, provenance.program_sha256);
  visit("git_commit", provenance.git_commit);
  visit("git_dirty", provenance.git_dirty);
  visit("reproduce", provenance.reproduce);
  visit("execution", provenance.execution);
}

struct PointFile {
  Provenance provenance;
  PointRecord point;
  std::map<std::string, std::string> unknown;  // as a point has them
};

// The reference once more, in a process of its own: what it varies by is the noise of the loss.
struct RepeatRecord {
  std::string key;  // of the point that it repeats
  std::string policy;
  PointStatus status = PointStatus::kOk;
  std::string reason;
  std::vector<StepRecord> steps;
  bool operator==(const RepeatRecord&) const = default;
};

template <RecordOf<RepeatRecord> Repeat, class Visit>
void visit_fields(Repeat& repeat, Visit visit) {
  visit("key", repeat.key);
  visit("policy", repeat.policy);
  visit("status", repeat.status);
  visit({"reason", kNullIfEmpty}, repeat.reason);
  visit("steps", repeat.steps);
}

// A point that a run of several shards is to measure.
struct PlannedPoint {
  std::string policy;
  Schedule schedule = Schedule::kOnDemand;
  std::string key;
  bool operator==(const PlannedPoint&) const = default;
};

template <RecordOf<PlannedPoint> Planned, class Visit>
void visit_fields(Planned& planned, Visit visit) {
  visit("policy", planned.policy);
  visit("schedule", planned.schedule);
  visit("key", planned.key);
}

// A comparison of a sweep that left no points, and why.
struct UnmeasuredComparison {
  std::string model;
  std::map<std::string, std::int64_t> dimensions;
  std::string dtype;
  std::uint64_t seed = 0;
  std::vector<std::string> policies;
  std::string outcome;  // "failed", "skipped"; "missing": nobody has ended it
  std::string reason;   // empty where it is missing
  bool operator==(const UnmeasuredComparison&) const = default;
};

template <RecordOf<UnmeasuredComparison> Comparison, class Visit>
void visit_fields(Comparison& comparison, Visit visit) {
  visit("model", comparison.model);
  visit("dimensions", comparison.dimensions);
  visit("dtype", comparison.dtype);
  visit("seed", comparison.seed);
  visit("policies", comparison.policies);
  visit("outcome", comparison.outcome);
  visit({"reason", kNullIfEmpty}, comparison.reason);
}

// One command's part in a merged report.
struct ReportSource {
  Provenance provenance;
  std::vector<std::size_t> points;  // indices, ascending
};

struct Report {
  Provenance provenance;
  std::vector<PointRecord> points;
  std::vector<PlannedPoint> planned;  // of all shards together; empty: it was not split
  // The sources of a merged report whose points come from more than one command. `provenance` then
  // says what all of them have in common.
  std::vector<ReportSource> sources;
  std::map<std::string, std::string> unknown;  // as a point has them
  std::vector<RepeatRecord> repeats;
  std::vector<UnmeasuredComparison> unmeasured;  // of a sweep's merged report, in its plan's order
};

}  // namespace rematch
