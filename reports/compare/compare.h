// Compares two reports and reaches a verdict. Bytes, counts and losses are compared exactly. A time
// is called different only if noise is unlikely to cause such a difference. The chance that noise
// causes a verdict in any row is at most the false-alarm ratio. Pure: no file, no clock.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "reports/compare/fail_on.h"
#include "reports/record/compare.h"
#include "reports/record/report.h"

namespace rematch {

// A difference counts only if it exceeds both the relative and the absolute limit.
struct Floor {
  double relative_ratio = 0;
  double absolute = 0;  // smallest difference that counts, in the metric's unit
};

struct CompareSettings {
  std::vector<Metric> metrics = {kAll<Metric>.begin(), kAll<Metric>.end()};
  // For a metric without an entry, the floor is kSmallestDifference if the metric is a time, and 0
  // if it is exact.
  std::map<Metric, Floor> floors;
  double false_alarm_ratio = 0.01;
  std::vector<FailOn> fail_on;
};

// `base_file` and `candidate_file` are used only as names in the record.
CompareRecord compare_reports(const Report& base, const std::string& base_file,
                              const Report& candidate, const std::string& candidate_file,
                              const CompareSettings& settings);

}  // namespace rematch
