// Two reports to a verdict. Bytes, counts and losses are exact; times are claimed to differ only
// where noise makes such a difference in any row less likely than the false-alarm ratio. Pure: no
// file, no clock.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "reports/compare/fail_on.h"
#include "reports/record/compare.h"
#include "reports/record/report.h"

namespace rematch {

// A difference counts where it is larger than both.
struct Floor {
  double relative_ratio = 0;
  double absolute = 0;  // in the metric's unit
};

struct CompareSettings {
  std::vector<Metric> metrics = {kAll<Metric>.begin(), kAll<Metric>.end()};
  // The default floor: kSmallestDifference for times, 0 for what is exact.
  std::map<Metric, Floor> floors;
  double false_alarm_ratio = 0.01;
  std::vector<FailOn> fail_on;
};

// `base_file` and `candidate_file` are only named.
CompareRecord compare_reports(const Report& base, const std::string& base_file,
                              const Report& candidate, const std::string& candidate_file,
                              const CompareSettings& settings);

}  // namespace rematch
