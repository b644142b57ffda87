#include "reports/compare/compare.h"

#include <algorithm>
#include <cstddef>

#include "policies/base/format.h"
#include "reports/compare/differences.h"
#include "reports/compare/match_points.h"
#include "reports/compare/metrics.h"
#include "reports/statistics/statistics.h"
#include "reports/statistics/student_t.h"

namespace rematch {
namespace {

// Compares two reports. run() does the whole comparison.
class ReportComparer {
 public:
  ReportComparer(const CompareSettings& settings, const Report& base, const Report& candidate)
      : settings_(settings),
        matched_(match_points(base, candidate)),
        environments_(base, candidate) {}

  CompareRecord run() {
    list_uncompared();
    list_environments();
    for (const PointPair& pair : matched_.pairs) compare(pair);
    judge_times();
    for (std::size_t row = 0; row < record_.rows.size(); ++row) explain_row(row);
    list_other_differences();
    summarize();
    return std::move(record_);
  }

 private:
  struct Tested {
    std::size_t row;
    std::size_t metric;
    double p_value;
  };

  Floor floor_of(Metric metric) const;
  void list_uncompared();
  void list_environments();
  void compare(const PointPair& pair);
  void judge_times();
  void explain_row(std::size_t row);
  void list_other_differences();
  void summarize();

  const CompareSettings& settings_;
  MatchedPoints matched_;
  PointEnvironments environments_;
  CompareRecord record_;
  std::vector<PointPair> compared_;  // one pair of points per row
  std::vector<Tested> tested_;
};

Floor ReportComparer::floor_of(Metric metric) const {
  const auto given = settings_.floors.find(metric);
  if (given != settings_.floors.end()) return given->second;
  return metric == Metric::kStepTime ? Floor{kSmallestDifference, 0} : Floor{};
}

UncomparedPoint describe(const PointPair& pair) {
  const PointRecord& point = pair.candidate != nullptr ? *pair.candidate : *pair.base;
  UncomparedPoint described;
  described.key = point_key(point.identity);
  described.model = point.identity.model;
  described.policy = point.policy;
  described.schedule = point.identity.schedule;
  if (pair.base != nullptr) described.base_status = pair.base->status;
  if (pair.candidate != nullptr) described.candidate_status = pair.candidate->status;
  described.reason = point.reason;
  if (described.reason.empty() && pair.base != nullptr) described.reason = pair.base->reason;
  return described;
}

void ReportComparer::list_uncompared() {
  SimilarPoints in_base;
  SimilarPoints in_candidate;
  for (const auto* pairs : {&matched_.pairs, &matched_.missing, &matched_.extra}) {
    for (const PointPair& pair : *pairs) {
      if (pair.base != nullptr) in_base.add(*pair.base);
      if (pair.candidate != nullptr) in_candidate.add(*pair.candidate);
    }
  }
  for (const PointPair& pair : matched_.missing) {
    UncomparedPoint& point = record_.missing.emplace_back(describe(pair));
    if (const PointRecord* other = in_candidate.nearest(*pair.base)) {
      point.identity_differences = identity_differences(pair.base->identity, other->identity);
    }
  }
  for (const PointPair& pair : matched_.extra) {
    UncomparedPoint& point = record_.extra.emplace_back(describe(pair));
    if (const PointRecord* other = in_base.nearest(*pair.candidate)) {
      point.identity_differences = identity_differences(other->identity, pair.candidate->identity);
    }
  }
  for (const PointPair& pair : matched_.pairs) {
    const bool ok =
        pair.base->status == PointStatus::kOk && pair.candidate->status == PointStatus::kOk;
    if (!ok) record_.failed.push_back(describe(pair));
  }
}

void ReportComparer::list_environments() {
  for (const PointPair& pair : matched_.pairs) environments_.between(*pair.base, *pair.candidate);
  record_.environment_differences = environments_.all();
}

void ReportComparer::compare(const PointPair& pair) {
  const PointRecord& base = *pair.base;
  const PointRecord& candidate = *pair.candidate;
  if (base.status != PointStatus::kOk || candidate.status != PointStatus::kOk) return;
  ComparedRow row;
  row.model = base.identity.model;
  row.dimensions = base.identity.dimensions;
  row.policy = base.policy;
  row.schedule = base.identity.schedule;
  row.device = base.device;
  row.dtype = base.identity.dtype;
  row.ops = base.identity.ops;
  row.threads = base.identity.threads;
  row.world = base.identity.world;
  row.plan_differs = base.identity.plan_sha256 != candidate.identity.plan_sha256;
  row.base_key = point_key(base.identity);
  row.candidate_key = row.plan_differs ? point_key(candidate.identity) : row.base_key;
  for (const Metric metric : settings_.metrics) {
    if (metric != Metric::kStepTime) {
      row.metrics.push_back(compare_exact(metric, base, candidate, floor_of(metric)));
      continue;
    }
    TimeComparison time = compare_times(base, candidate, floor_of(metric));
    if (time.p_value) {
      tested_.push_back({record_.rows.size(), row.metrics.size(), *time.p_value});
    }
    row.metrics.push_back(std::move(time.record));
  }
  record_.rows.push_back(std::move(row));
  compared_.push_back(pair);
}

void ReportComparer::judge_times() {
  std::vector<double> p_values;
  for (const Tested& tested : tested_) p_values.push_back(tested.p_value);
  const std::vector<double> adjusted = holm_adjusted(p_values);
  for (std::size_t index = 0; index < tested_.size(); ++index) {
    const Tested& tested = tested_[index];
    record_.rows[tested.row].metrics[tested.metric].adjusted_p_value = adjusted[index];
  }
  for (ComparedRow& row : record_.rows) {
    for (MetricRecord& metric : row.metrics) {
      if (metric.metric != Metric::kStepTime) continue;
      judge_time(metric, floor_of(Metric::kStepTime), settings_.false_alarm_ratio);
    }
  }
}

void ReportComparer::explain_row(std::size_t row) {
  for (const MetricRecord& metric : record_.rows[row].metrics) {
    auto explanation = explain(metric, *compared_[row].base, *compared_[row].candidate);
    if (explanation) record_.rows[row].explanations.push_back(*std::move(explanation));
  }
}

// Lists differences in figures that have no metric, unless the user selected metrics. Skips rows
// whose plans differ, because a different plan changes most figures.
void ReportComparer::list_other_differences() {
  if (settings_.metrics.size() != kAll<Metric>.size()) return;
  for (std::size_t index = 0; index < record_.rows.size(); ++index) {
    ComparedRow& row = record_.rows[index];
    if (row.plan_differs) continue;
    row.other_differences =
        other_differences(*compared_[index].base, *compared_[index].candidate, row);
  }
}

std::string counted(std::size_t count, std::string_view what) {
  return std::to_string(count) + " " + std::string(what);
}

std::string sentence_of(const CompareRecord& record) {
  std::string text = counted(record.rows.size(), record.rows.size() == 1 ? "row" : "rows");
  for (const auto& [metric, verdicts] : record.summary) {
    std::string parts;
    for (const auto& [verdict, rows] : verdicts) {
      if (verdict == CompareVerdict::kSame || verdict == CompareVerdict::kNotMeasured) continue;
      parts +=
          (parts.empty() ? "" : ", ") + counted(static_cast<std::size_t>(rows), to_string(verdict));
    }
    if (!parts.empty())
      text.append("; ").append(as_words(short_name(metric))).append(": ").append(parts);
  }
  const auto others =
      std::count_if(record.rows.begin(), record.rows.end(),
                    [](const ComparedRow& row) { return !row.other_differences.empty(); });
  if (others > 0)
    text += "; other fields: " + counted(static_cast<std::size_t>(others), "different");
  if (text.find(';') == std::string::npos && !record.rows.empty()) text += ", no difference";
  if (!record.missing.empty()) text += "; " + counted(record.missing.size(), "missing");
  if (!record.extra.empty()) text += "; " + counted(record.extra.size(), "extra");
  if (!record.failed.empty()) text += "; " + counted(record.failed.size(), "failed");
  for (const std::string& what : undecided(record)) text += "; undecided: " + what;
  if (!record.environment_differences.empty()) {
    text += "; measured in different environments: " + describe(record.environment_differences);
  }
  return text;
}

void ReportComparer::summarize() {
  for (const Metric metric : settings_.metrics) {
    const Floor floor = floor_of(metric);
    record_.floors.push_back({metric, floor.relative_ratio, floor.absolute});
  }
  record_.false_alarm_ratio = settings_.false_alarm_ratio;
  for (const ComparedRow& row : record_.rows) {
    for (const MetricRecord& metric : row.metrics) ++record_.summary[metric.metric][metric.verdict];
  }
  for (const FailOn what : settings_.fail_on) {
    record_.fail_on.emplace_back(to_string(what));
    if (is_found(record_, what)) record_.failed_on.emplace_back(to_string(what));
  }
}

}  // namespace

CompareRecord compare_reports(const Report& base, const std::string& base_file,
                              const Report& candidate, const std::string& candidate_file,
                              const CompareSettings& settings) {
  CompareRecord record = ReportComparer(settings, base, candidate).run();
  record.base = describe_source(base.provenance, base_file);
  record.candidate = describe_source(candidate.provenance, candidate_file);
  record.verdict = sentence_of(record);
  return record;
}

}  // namespace rematch
