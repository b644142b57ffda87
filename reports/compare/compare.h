// Compares two reports and reaches a verdict. Bytes, counts and losses are compared exactly. A time
// is called different only if noise is unlikely to cause the difference. The
// probability that noise causes any such verdict in a comparison is at most false_alarm_ratio.
// Pure: no file, no clock.
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
  // The floor of a metric without an entry is kSmallestDifference for a time, and 0 for an exact
  // metric.
  std::map<Metric, Floor> floors;
  double false_alarm_ratio = 0.01;
  std::vector<FailOn> fail_on;
};

// `base_file` and `candidate_file` are used only as names in the record.
CompareRecord compare_reports(const Report& base, const std::string& base_file,
                              const Report& candidate, const std::string& candidate_file,
                              const CompareSettings& settings);

}  // namespace rematch
