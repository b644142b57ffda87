#include "reports/compare/fail_on.h"

#include <algorithm>
#include <array>

#include "policies/base/format.h"
#include "reports/compare/metrics.h"

namespace rematch {
namespace {

constexpr const char* kNothingCompared = "no point finished in both reports";
constexpr const char* kNothingKnown = "no metric was measured in both reports for any point";

bool has_verdict(const CompareRecord& record, Metric metric,
                 std::initializer_list<CompareVerdict> verdicts) {
  const auto found = record.summary.find(metric);
  if (found == record.summary.end()) return false;
  return std::any_of(verdicts.begin(), verdicts.end(),
                     [&](CompareVerdict verdict) { return found->second.contains(verdict); });
}

std::string not_told_from_noise(const MetricRecord& time) {
  if (!time.adjusted_p_value)
    return "step time has only one round on one side, so its spread is unknown";
  return "step time ratio " + format_fixed(time.ratio.value_or(0), 2) + " " +
         format_interval(time.interval.value_or(std::array{0.0, 0.0}), 2) + " is within noise";
}

// Returns why the metric cannot be judged, or "" if it can. A metric that neither side measured
// needs no verdict.
std::string obstacle(const MetricRecord& metric, const Floor& floor) {
  const std::string name = as_words(short_name(metric.metric));
  if (metric.verdict == CompareVerdict::kNotMeasured && metric.base.has_value()) {
    return name + " was not measured in the candidate";
  }
  if (metric.verdict == CompareVerdict::kNotMeasured && metric.candidate.has_value()) {
    return name + " was not measured in the base";
  }
  if (metric.verdict != CompareVerdict::kUnsure) return "";
  if (metric.metric == Metric::kLoss) return name + " is " + metric.note;
  return may_be_slower(metric, floor) ? not_told_from_noise(metric) : "";
}

Floor floor_of(const CompareRecord& record, Metric metric) {
  for (const FloorRecord& floor : record.floors) {
    if (floor.metric == metric) return {floor.relative_ratio, floor.absolute};
  }
  return {};
}

// Returns why the row cannot be judged, or "" if it can. A row can be judged if at least one metric
// was compared, and obstacle() returns "" for every metric.
std::string obstacle(const CompareRecord& record, const ComparedRow& row,
                     const std::vector<Metric>& metrics) {
  bool is_compared = false;
  for (const MetricRecord& metric : row.metrics) {
    if (std::find(metrics.begin(), metrics.end(), metric.metric) == metrics.end()) continue;
    std::string found = obstacle(metric, floor_of(record, metric.metric));
    if (!found.empty()) return found;
    is_compared = is_compared || metric.verdict != CompareVerdict::kNotMeasured;
  }
  if (is_compared) return "";
  return as_words(short_name(metrics.front())) + " was measured on neither side";
}

std::string name_of(const std::string& policy, Schedule schedule) {
  return policy + " " + std::string(to_string(schedule));
}

bool finished_in_base(const UncomparedPoint& point) {
  return point.base_status == PointStatus::kOk;
}

// Describes a point that finished in the base but not in the candidate. Empty if there is none.
std::string unfinished(const CompareRecord& record) {
  const auto failed =
      std::find_if(record.failed.begin(), record.failed.end(), [](const UncomparedPoint& point) {
        return finished_in_base(point) && point.candidate_status != PointStatus::kOk;
      });
  if (failed != record.failed.end()) {
    return name_of(failed->policy, failed->schedule) + " ended " +
           std::string(to_string(*failed->candidate_status)) + " in the candidate";
  }
  const auto missing = std::find_if(record.missing.begin(), record.missing.end(), finished_in_base);
  if (missing == record.missing.end()) return "";
  return name_of(missing->policy, missing->schedule) + " is not in the candidate";
}

bool ended_badly(const UncomparedPoint& point) {
  return point.candidate_status && point.candidate_status != PointStatus::kOk;
}

bool has_compared_metric(const ComparedRow& row) {
  return std::any_of(row.metrics.begin(), row.metrics.end(), [](const MetricRecord& metric) {
    return metric.verdict != CompareVerdict::kNotMeasured;
  });
}

// Returns why the condition `missing` or `failed` cannot be judged, or "" if it can. It cannot be
// judged if a report has no points.
std::string why_vacuous(const CompareRecord& record, FailOn what) {
  const bool is_there = !record.rows.empty() || !record.failed.empty();
  if (what == FailOn::kMissing) return is_there ? "" : "the base has no points";
  return is_there || !record.extra.empty() ? "" : "the candidate has no points";
}

}  // namespace

std::vector<Metric> metrics_of(FailOn what) {
  switch (what) {
    case FailOn::kSlower:
      return {Metric::kStepTime};
    case FailOn::kPeak:
      return {Metric::kPeakAllocated, Metric::kPeakReserved};
    case FailOn::kCounts:
      return {Metric::kExecutedOps, Metric::kRecomputedOps, Metric::kKernelCount,
              Metric::kCollectives, Metric::kCollectiveBytes};
    case FailOn::kLoss:
      return {Metric::kLoss};
    case FailOn::kMissing:
    case FailOn::kFailed:
      break;
  }
  return {};
}

bool is_found(const CompareRecord& record, FailOn what) {
  using enum CompareVerdict;
  const std::vector<Metric> metrics = metrics_of(what);
  const auto any = [&](std::initializer_list<CompareVerdict> verdicts) {
    return std::any_of(metrics.begin(), metrics.end(),
                       [&](Metric metric) { return has_verdict(record, metric, verdicts); });
  };
  switch (what) {
    case FailOn::kSlower:
      return any({kSlower});
    case FailOn::kPeak:
      return any({kHigher});
    case FailOn::kCounts:
    case FailOn::kLoss:
      return any({kHigher, kLower, kDifferent});
    case FailOn::kMissing:
      return !record.missing.empty();
    case FailOn::kFailed:
      return std::any_of(record.failed.begin(), record.failed.end(), ended_badly) ||
             std::any_of(record.extra.begin(), record.extra.end(), ended_badly);
  }
  return false;
}

std::string why_undecided(const CompareRecord& record, FailOn what) {
  const std::vector<Metric> metrics = metrics_of(what);
  if (metrics.empty()) return why_vacuous(record, what);
  if (record.rows.empty()) return kNothingCompared;
  for (const ComparedRow& row : record.rows) {
    const std::string found = obstacle(record, row, metrics);
    if (!found.empty()) return found + " for " + name_of(row.policy, row.schedule);
  }
  return unfinished(record);
}

std::vector<std::string> undecided(const CompareRecord& record) {
  if (record.fail_on.empty()) {
    if (record.rows.empty()) return {kNothingCompared};
    if (std::none_of(record.rows.begin(), record.rows.end(), has_compared_metric)) {
      return {kNothingKnown};
    }
  }
  std::vector<std::string> lines;
  for (const std::string& name : record.fail_on) {
    const std::optional<FailOn> what = from_string<FailOn>(name);
    if (!what || is_found(record, *what)) continue;
    const std::string why = why_undecided(record, *what);
    if (!why.empty()) lines.push_back(name + " (" + why + ")");
  }
  return lines;
}

}  // namespace rematch
