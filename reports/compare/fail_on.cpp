#include "reports/compare/fail_on.h"

#include <algorithm>
#include <array>

namespace rematch {
namespace {

constexpr std::array<std::string_view, 6> kNames = {"slower", "peak",    "counts",
                                                    "loss",   "missing", "failed"};

bool has_verdict(const CompareRecord& record, Metric metric,
                 std::initializer_list<CompareVerdict> verdicts) {
  const auto found = record.summary.find(metric);
  if (found == record.summary.end()) return false;
  return std::any_of(verdicts.begin(), verdicts.end(),
                     [&](CompareVerdict verdict) { return found->second.contains(verdict); });
}

// Empty: compared, or known on neither side.
std::string obstacle(const MetricRecord& metric) {
  const std::string name(short_name(metric.metric));
  if (metric.verdict == CompareVerdict::kNotMeasured && metric.base.has_value()) {
    return name + " is not known in the candidate";
  }
  if (metric.verdict == CompareVerdict::kNotMeasured && metric.candidate.has_value()) {
    return name + " is not known in the base";
  }
  const bool no_spread = metric.metric == Metric::kStepTime &&
                         metric.verdict == CompareVerdict::kUnsure && !metric.adjusted_p_value;
  return no_spread ? name + " has one block on a side, so no spread" : "";
}

// Empty: every metric that both could know was compared.
std::string obstacle(const ComparedRow& row, const std::vector<Metric>& metrics) {
  bool is_compared = false;
  for (const MetricRecord& metric : row.metrics) {
    if (std::find(metrics.begin(), metrics.end(), metric.metric) == metrics.end()) continue;
    if (std::string found = obstacle(metric); !found.empty()) return found;
    is_compared = is_compared || metric.verdict != CompareVerdict::kNotMeasured;
  }
  if (is_compared) return "";
  return std::string(short_name(metrics.front())) + " is known on neither side";
}

}  // namespace

std::optional<FailOn> fail_on_from_string(std::string_view name) {
  for (std::size_t index = 0; index < kNames.size(); ++index) {
    if (name == kNames.at(index)) return static_cast<FailOn>(index);
  }
  return std::nullopt;
}

std::string_view to_string(FailOn what) { return kNames.at(static_cast<std::size_t>(what)); }

std::vector<std::string_view> fail_on_names() { return {kNames.begin(), kNames.end()}; }

std::vector<Metric> metrics_of(FailOn what) {
  switch (what) {
    case FailOn::kSlower:
      return {Metric::kStepTime};
    case FailOn::kPeak:
      return {Metric::kPeakAllocated, Metric::kPeakReserved};
    case FailOn::kCounts:
      return {Metric::kExecutedOps, Metric::kRecomputedOps, Metric::kKernelCount};
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
      return std::any_of(record.failed.begin(), record.failed.end(), [](const auto& point) {
        return point.candidate_status != PointStatus::kOk;
      });
  }
  return false;
}

std::string why_undecided(const CompareRecord& record, FailOn what) {
  const std::vector<Metric> metrics = metrics_of(what);
  if (metrics.empty()) return "";
  if (record.rows.empty()) return "no point is in both reports and finished in both";
  for (const ComparedRow& row : record.rows) {
    const std::string found = obstacle(row, metrics);
    if (found.empty()) continue;
    return found + " for " + row.policy + " " + std::string(to_string(row.schedule));
  }
  return "";
}

std::vector<std::string> undecided(const CompareRecord& record) {
  std::vector<std::string> lines;
  for (const std::string& name : record.fail_on) {
    const std::optional<FailOn> what = fail_on_from_string(name);
    if (!what || is_found(record, *what)) continue;
    const std::string why = why_undecided(record, *what);
    if (!why.empty()) lines.push_back(name + " (" + why + ")");
  }
  return lines;
}

}  // namespace rematch
