// Compares two reports and reaches a verdict. Bytes, counts and losses are compared exactly. A time
// is called different only if noise would cause such a difference in any row with less than the
// false-alarm ratio's probability. Pure: no file, no clock.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "reports/compare/fail_on.h"
#include "reports/record/compare.h"
#include "reports/record/report.h"

namespace rematch {

// A difference counts only if it exceeds both limits.
struct Floor {
  double relative_ratio = 0;
  double absolute = 0;  // in the metric's unit
};

struct CompareSettings {
  std::vector<Metric> metrics = {kAll<Metric>.begin(), kAll<Metric>.end()};
  // Without an entry the floor is kSmallestDifference for times and 0 for exact metrics.
  std::map<Metric, Floor> floors;
  double false_alarm_ratio = 0.01;
  std::vector<FailOn> fail_on;
};

// `base_file` and `candidate_file` appear only as names in the record.
CompareRecord compare_reports(const Report& base, const std::string& base_file,
                              const Report& candidate, const std::string& candidate_file,
                              const CompareSettings& settings);

}  // namespace rematch
