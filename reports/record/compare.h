// The result of `rematch compare` on two reports: a row for each point that both reports have, the
// verdict of every metric, explanations of differences, and the points that could not be compared.
// Its JSON schema is rematch.compare/1.0.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policies/base/json_fwd.h"
#include "policies/base/record_fields.h"
#include "policies/plan/plan_json.h"
#include "reports/record/point.h"

namespace rematch {

// Identifies one of the two compared reports.
struct SourceRecord {
  std::string file;
  std::optional<std::string> device;
  std::string fingerprint;
  std::optional<std::string> tool_version;
  std::optional<std::string> git_commit;
  std::optional<bool> git_dirty;
  std::string reproduce;
};

template <RecordOf<SourceRecord> Source, class Visit>
void visit_fields(Source& source, Visit visit) {
  visit("file", source.file);
  visit("device", source.device);
  visit("fingerprint", source.fingerprint);
  visit("tool_version", source.tool_version);
  visit("git_commit", source.git_commit);
  visit("git_dirty", source.git_dirty);
  visit("reproduce", source.reproduce);
}

// A member of the environment, or of a point's identity, that differs between base and candidate.
struct NamedDifference {
  std::string name;  // "libtorch_version", "seed"
  std::string base;
  std::string candidate;
  bool operator==(const NamedDifference&) const = default;
};

template <RecordOf<NamedDifference> Difference, class Visit>
void visit_fields(Difference& difference, Visit visit) {
  visit("name", difference.name);
  visit("base", difference.base);
  visit("candidate", difference.candidate);
}

enum class Metric : std::uint8_t {
  kStepTime,
  kPeakAllocated,
  kPeakReserved,
  kExecutedOps,
  kRecomputedOps,
  kKernelCount,
  kRecomputedFlops,
  kCollectives,
  kCollectiveBytes,
  kLoss,
};
// The metrics' names in JSON, which include the unit.
template <>
inline constexpr std::array<std::string_view, 10> kWords<Metric> = {
    "step_time_ns",        "peak_allocated_bytes",
    "peak_reserved_bytes", "executed_ops",
    "recomputed_ops",      "kernel_count",
    "recomputed_flops",    "collectives",
    "collective_bytes",    "loss"};

// The name on the command line, without the unit: "step_time".
std::string_view short_name(Metric metric);
std::optional<Metric> metric_from_name(std::string_view name);  // accepts the name with or without
                                                                // the unit

// A time is faster, slower, same or unsure. An exact metric is lower, higher or same, or different
// if the totals are equal but their parts are not. A loss is same, different, or unsure if the
// candidate lacks steps or bits and everything else is equal.
enum class CompareVerdict : std::uint8_t {
  kFaster,
  kSlower,
  kSame,
  kUnsure,
  kLower,
  kHigher,
  kDifferent,
  kNotMeasured,  // not measured on one side or on both
};
template <>
inline constexpr std::array<std::string_view, 8> kWords<CompareVerdict> = {
    "faster", "slower", "same", "unsure", "lower", "higher", "different", "not_measured"};

struct MetricRecord {
  Metric metric = Metric::kStepTime;
  // value per step; for a loss, the value at the last step that both sides have
  std::optional<double> base;
  std::optional<double> candidate;
  std::optional<double> ratio;                    // candidate divided by base
  std::optional<std::array<double, 2>> interval;  // 95 % interval of the ratio; only for times
  // The probability that equal points differ this much, corrected for the number of rows. Only for
  // times.
  std::optional<double> adjusted_p_value;
  CompareVerdict verdict = CompareVerdict::kNotMeasured;
  std::string note;  // a remark in one line; may be empty
};

template <RecordOf<MetricRecord> AMetric, class Visit>
void visit_fields(AMetric& metric, Visit visit) {
  visit("metric", metric.metric);
  visit({"base", kWholeIfWhole | kColumn}, metric.base);
  visit({"candidate", kWholeIfWhole | kColumn}, metric.candidate);
  visit({"ratio", kColumn}, metric.ratio);
  visit({"interval", kColumn, "interval_*_ratio"}, metric.interval);
  visit({"adjusted_p_value", kColumn}, metric.adjusted_p_value);
  visit("verdict", metric.verdict);
  visit({"note", kNullIfEmpty}, metric.note);
}

// The contribution of one part of a step to the difference of a metric.
struct ContributionRecord {
  std::string name;  // "attention_forward in recompute", "saved_activations"
  std::int64_t base = 0;
  std::int64_t candidate = 0;
  double share_ratio = 0;  // share of the metric's whole difference; the listed shares need not
                           // add up to 1
};

template <RecordOf<ContributionRecord> Contribution, class Visit>
void visit_fields(Contribution& contribution, Visit visit) {
  visit("name", contribution.name);
  visit("base", contribution.base);
  visit("candidate", contribution.candidate);
  visit("share_ratio", contribution.share_ratio);
}

struct ExplanationRecord {
  Metric metric = Metric::kStepTime;
  std::string by;                         // for example "phase and kernel class"
  std::vector<ContributionRecord> parts;  // largest share first
  std::string sentence;                   // "95 % of the +12.3 % is attention_forward in recompute"
};

template <RecordOf<ExplanationRecord> Explanation, class Visit>
void visit_fields(Explanation& explanation, Visit visit) {
  visit("metric", explanation.metric);
  visit("by", explanation.by);
  visit("sentence", explanation.sentence);
  visit("parts", explanation.parts);
}

// A point that both reports have.
struct ComparedRow {
  std::string model;
  std::map<std::string, std::int64_t> dimensions;
  std::string policy;
  Schedule schedule = Schedule::kOnDemand;
  std::string device;
  // The next four fields are absent from files of earlier builds, which did not record them.
  std::optional<std::string> dtype;
  std::optional<std::string> ops;
  std::optional<std::int64_t> threads;
  std::optional<std::int64_t> world;
  std::string base_key;
  std::string candidate_key;
  bool plan_differs = false;  // true if base and candidate have different plans
  std::vector<MetricRecord> metrics;
  std::vector<ExplanationRecord> explanations;
  // JSON names of other fields that differ, such as "memory.after_forward_bytes". Includes only
  // fields without noise. Filled only if all metrics are compared.
  std::vector<std::string> other_differences;
};

template <RecordOf<ComparedRow> Row, class Visit>
void visit_fields(Row& row, Visit visit) {
  visit("model", row.model);
  visit("dimensions", row.dimensions);
  visit("policy", row.policy);
  visit("schedule", row.schedule);
  visit("device", row.device);
  visit({"dtype", kLater | kColumn}, row.dtype);
  visit({"ops", kLater | kColumn}, row.ops);
  visit({"threads", kLater | kColumn}, row.threads);
  visit({"world", kLater | kColumn}, row.world);
  visit("base_key", row.base_key);
  visit("candidate_key", row.candidate_key);
  visit("plan_differs", row.plan_differs);
  visit("metrics", row.metrics);
  visit("explanations", row.explanations);
  visit({"other_differences", kLater}, row.other_differences);
}

// A point that is missing in one of the reports, or did not finish in one of them.
struct UncomparedPoint {
  std::string key;
  std::string model;
  std::string policy;
  Schedule schedule = Schedule::kOnDemand;
  std::optional<PointStatus> base_status;  // absent if the report does not have the point
  std::optional<PointStatus> candidate_status;
  std::string reason;  // the candidate's reason for failing, or else the base's
  // For a point without a partner: its differences from the most similar point of the other report.
  // Empty if that report has no point of this policy on this model.
  std::vector<NamedDifference> identity_differences;
};

template <RecordOf<UncomparedPoint> Point, class Visit>
void visit_fields(Point& point, Visit visit) {
  visit("key", point.key);
  visit("model", point.model);
  visit("policy", point.policy);
  visit("schedule", point.schedule);
  visit("base_status", point.base_status);
  visit("candidate_status", point.candidate_status);
  visit({"reason", kNullIfEmpty}, point.reason);
  visit({"identity_differences", kLater}, point.identity_differences);
}

// A difference counts only if it exceeds both limits.
struct FloorRecord {
  Metric metric = Metric::kStepTime;
  double relative_ratio = 0;
  double absolute = 0;  // floors are in the metric's unit
};

template <RecordOf<FloorRecord> Floor, class Visit>
void visit_fields(Floor& floor, Visit visit) {
  visit("metric", floor.metric);
  visit("relative_ratio", floor.relative_ratio);
  visit({"absolute", kWholeIfWhole}, floor.absolute);
}

struct CompareRecord {
  SourceRecord base;
  SourceRecord candidate;
  // a value is "unknown" if its report did not record it
  std::vector<NamedDifference> environment_differences;
  double false_alarm_ratio = 0;  // chance that any row gets a false verdict on a time
  std::vector<FloorRecord> floors;
  std::vector<ComparedRow> rows;
  std::vector<UncomparedPoint> missing;  // points that are only in the base
  std::vector<UncomparedPoint> extra;    // points that are only in the candidate
  std::vector<UncomparedPoint> failed;
  // Number of rows by metric and verdict, such as {"step_time_ns": {"slower": 1}}.
  std::map<Metric, std::map<CompareVerdict, int>> summary;
  std::string verdict;                 // the verdict as a sentence
  std::vector<std::string> fail_on;    // conditions that were requested, such as "slower"
  std::vector<std::string> failed_on;  // requested conditions that are met
};

template <RecordOf<CompareRecord> Record, class Visit>
void visit_fields(Record& record, Visit visit) {
  visit("base", record.base);
  visit("candidate", record.candidate);
  visit("environment_differences", record.environment_differences);
  visit("false_alarm_ratio", record.false_alarm_ratio);
  visit("floors", record.floors);
  visit("verdict", record.verdict);
  visit("fail_on", record.fail_on);
  visit("failed_on", record.failed_on);
  visit("summary", record.summary);
  visit("rows", record.rows);
  visit("missing", record.missing);
  visit("extra", record.extra);
  visit("failed", record.failed);
}

Json compare_to_json(const CompareRecord& record);
CompareRecord compare_from_json(const Json& json);  // throws FormatError

}  // namespace rematch
