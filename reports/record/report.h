// A report: points measured by one command on one machine. A point file holds one of them with the
// same provenance, so any set of point files makes a report.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "policies/plan/rejected.h"
#include "reports/record/environment.h"
#include "reports/record/point.h"

namespace rematch {

// What a figure needs to be made again.
struct Provenance {
  Environment environment;
  std::vector<std::string> command;  // argv
  std::uint64_t seed = 0;
  std::optional<std::string> git_commit;  // of the tool; absent outside a checkout
  std::optional<bool> git_dirty;
  std::optional<std::string> tool_version;
  std::string reproduce;  // the line to type
  std::string execution = "eager";
};

struct PointFile {
  Provenance provenance;
  PointRecord point;
  std::map<std::string, Json> unknown;  // keys of a newer minor version, by JSON pointer
};

// The reference once more, in a process of its own: what it varies by is the noise of the loss.
struct RepeatRecord {
  std::string key;  // of the point that it repeats
  std::string policy;
  PointStatus status = PointStatus::kOk;
  std::string reason;
  std::vector<StepRecord> steps;
};

struct Report {
  Provenance provenance;
  std::vector<PointRecord> points;
  std::map<std::string, Json> unknown;
  std::vector<RepeatRecord> repeats;
};

// One report of point files in the given order, with the first one's provenance. Rejected: none,
// different fingerprints, two points of one policy with one key.
std::variant<Report, Rejected> merge_points(const std::vector<PointFile>& files);

}  // namespace rematch
