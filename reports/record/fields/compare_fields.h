// The fields of a compare record's parts. A field is a member in compare.h, a line here, and an
// entry in reports/schema/compare.schema.json.
#pragma once

#include "policies/base/record_fields.h"
#include "reports/record/compare.h"
#include "reports/record/fields/point_fields.h"

namespace rematch {

Json to_value(Metric metric);
Json to_value(CompareVerdict verdict);
Json to_value(const std::map<Metric, std::map<CompareVerdict, int>>& summary);
void read_value(const JsonField& field, Metric& metric);
void read_value(const JsonField& field, CompareVerdict& verdict);
void read_value(const JsonField& field, std::map<Metric, std::map<CompareVerdict, int>>& summary);

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

template <RecordOf<NamedDifference> Difference, class Visit>
void visit_fields(Difference& difference, Visit visit) {
  visit("name", difference.name);
  visit("base", difference.base);
  visit("candidate", difference.candidate);
}

template <RecordOf<MetricRecord> AMetric, class Visit>
void visit_fields(AMetric& metric, Visit visit) {
  visit("metric", metric.metric);
  visit({"base", kWholeIfWhole}, metric.base);
  visit({"candidate", kWholeIfWhole}, metric.candidate);
  visit("ratio", metric.ratio);
  visit("interval", metric.interval);
  visit("adjusted_p_value", metric.adjusted_p_value);
  visit("verdict", metric.verdict);
  visit({"note", kNullIfEmpty}, metric.note);
}

template <RecordOf<ContributionRecord> Contribution, class Visit>
void visit_fields(Contribution& contribution, Visit visit) {
  visit("name", contribution.name);
  visit("base", contribution.base);
  visit("candidate", contribution.candidate);
  visit("share_ratio", contribution.share_ratio);
}

template <RecordOf<ExplanationRecord> Explanation, class Visit>
void visit_fields(Explanation& explanation, Visit visit) {
  visit("metric", explanation.metric);
  visit("by", explanation.by);
  visit("sentence", explanation.sentence);
  visit("parts", explanation.parts);
}

template <RecordOf<ComparedRow> Row, class Visit>
void visit_fields(Row& row, Visit visit) {
  visit("model", row.model);
  visit("dimensions", row.dimensions);
  visit("policy", row.policy);
  visit("schedule", row.schedule);
  visit("device", row.device);
  visit({"dtype", kLater}, row.dtype);
  visit({"ops", kLater}, row.ops);
  visit({"threads", kLater}, row.threads);
  visit({"world", kLater}, row.world);
  visit("base_key", row.base_key);
  visit("candidate_key", row.candidate_key);
  visit("plan_differs", row.plan_differs);
  visit("metrics", row.metrics);
  visit("explanations", row.explanations);
  visit({"other_differences", kLater}, row.other_differences);
}

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

template <RecordOf<FloorRecord> Floor, class Visit>
void visit_fields(Floor& floor, Visit visit) {
  visit("metric", floor.metric);
  visit("relative_ratio", floor.relative_ratio);
  visit({"absolute", kWholeIfWhole}, floor.absolute);
}

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

}  // namespace rematch
