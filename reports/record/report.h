// A report: the points that one command measured on one machine. A point file holds one of these
// points and the report's provenance, so any set of point files makes a report.
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
  std::optional<std::string> git_commit;  // commit of the tool; absent outside a checkout
  std::optional<bool> git_dirty;
  std::optional<std::string> tool_version;
  // hash of the binary; two builds with equal bytes count as one build
  std::optional<std::string> program_sha256;
  std::string reproduce;  // the command line that reproduces the report
  std::string execution = "eager";
};

// All fields except the environment's fingerprint, which files store next to the environment.
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
  std::map<std::string, std::string> unknown;  // see PointRecord::unknown
};

// A run of the reference in a separate process. The variation between such runs is the noise of the
// loss.
struct RepeatRecord {
  std::string key;  // key of the repeated point
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

// A point that one of several shards will measure.
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

// A comparison that a sweep planned but did not measure, with the reason.
struct UnmeasuredComparison {
  std::string model;
  std::map<std::string, std::int64_t> dimensions;
  std::string dtype;
  std::uint64_t seed = 0;
  std::vector<std::string> policies;
  std::string outcome;  // "failed" or "skipped"; "missing" if no worker finished the comparison
  std::string reason;   // empty if the outcome is "missing"
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

// The part of a merged report that comes from one command.
struct ReportSource {
  Provenance provenance;
  std::vector<std::size_t> points;  // indices into the report's points, ascending
};

struct Report {
  Provenance provenance;
  std::vector<PointRecord> points;
  // the points that all shards planned; empty if the run was not split
  std::vector<PlannedPoint> planned;
  // Filled in a merged report whose points come from more than one command. `provenance` then holds
  // what these commands have in common.
  std::vector<ReportSource> sources;
  std::map<std::string, std::string> unknown;  // see PointRecord::unknown
  std::vector<RepeatRecord> repeats;
  std::vector<UnmeasuredComparison> unmeasured;  // in the order of the sweep's plan
};

}  // namespace rematch
