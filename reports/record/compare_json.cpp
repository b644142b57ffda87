#include <algorithm>
#include <cmath>

#include "policies/trace/json.h"
#include "policies/trace/schema.h"
#include "reports/record/compare.h"
#include "reports/record/compare_parts_json.h"
#include "reports/record/field_value.h"
#include "reports/record/parts_json.h"

namespace rematch {
namespace {

Metric read_metric(const JsonField& field) {
  const std::optional<Metric> metric = metric_from_string(field.string());
  if (!metric) field.fail("'" + field.string() + "' is no metric that this build knows");
  return *metric;
}

CompareVerdict read_verdict(const JsonField& field) {
  const std::optional<CompareVerdict> verdict = compare_verdict_from_string(field.string());
  if (!verdict) field.fail("'" + field.string() + "' is no verdict");
  return *verdict;
}

Json metric_to_json(const MetricRecord& metric) {
  return {{"metric", to_string(metric.metric)},
          {"base", number_to_json(metric.base)},
          {"candidate", number_to_json(metric.candidate)},
          {"ratio", to_value(metric.ratio)},
          {"interval", to_value(metric.interval)},
          {"adjusted_p_value", to_value(metric.adjusted_p_value)},
          {"verdict", to_string(metric.verdict)},
          {"note", text_or_null(metric.note)}};
}

MetricRecord metric_from_json(const JsonField& field) {
  MetricRecord metric;
  metric.metric = read_metric(field.at("metric"));
  read_member(field, "base", metric.base);
  read_member(field, "candidate", metric.candidate);
  read_member(field, "ratio", metric.ratio);
  read_member(field, "interval", metric.interval);
  read_member(field, "adjusted_p_value", metric.adjusted_p_value);
  metric.verdict = read_verdict(field.at("verdict"));
  read_text(field, "note", metric.note);
  return metric;
}

Json contribution_to_json(const ContributionRecord& part) {
  return {{"name", part.name},
          {"base", part.base},
          {"candidate", part.candidate},
          {"share_ratio", to_value(part.share_ratio)}};
}

ContributionRecord contribution_from_json(const JsonField& field) {
  ContributionRecord part;
  read_member(field, "name", part.name);
  read_member(field, "base", part.base);
  read_member(field, "candidate", part.candidate);
  read_member(field, "share_ratio", part.share_ratio);
  return part;
}

Json explanation_to_json(const ExplanationRecord& explanation) {
  return {{"metric", to_string(explanation.metric)},
          {"by", explanation.by},
          {"sentence", explanation.sentence},
          {"parts", list_to_json(explanation.parts, contribution_to_json)}};
}

ExplanationRecord explanation_from_json(const JsonField& field) {
  ExplanationRecord explanation;
  explanation.metric = read_metric(field.at("metric"));
  read_member(field, "by", explanation.by);
  read_member(field, "sentence", explanation.sentence);
  read_list(field.at("parts"), explanation.parts, contribution_from_json);
  return explanation;
}

Json row_to_json(const ComparedRow& row) {
  return {{"model", row.model},
          {"dimensions", to_value(row.dimensions)},
          {"policy", row.policy},
          {"schedule", to_string(row.schedule)},
          {"device", row.device},
          {"dtype", to_value(row.dtype)},
          {"ops", to_value(row.ops)},
          {"threads", to_value(row.threads)},
          {"world", to_value(row.world)},
          {"base_key", row.base_key},
          {"candidate_key", row.candidate_key},
          {"plan_differs", row.plan_differs},
          {"metrics", list_to_json(row.metrics, metric_to_json)},
          {"explanations", list_to_json(row.explanations, explanation_to_json)},
          {"other_differences", row.other_differences}};
}

ComparedRow row_from_json(const JsonField& field) {
  ComparedRow row;
  read_member(field, "model", row.model);
  read_member(field, "dimensions", row.dimensions);
  read_member(field, "policy", row.policy);
  row.schedule = schedule_from_json(field.at("schedule"));
  read_member(field, "device", row.device);
  const auto read = [&field](const char* name, auto& value) {
    if (const auto found = field.find(name)) read_value(*found, value);
  };
  read("dtype", row.dtype);
  read("ops", row.ops);
  read("threads", row.threads);
  read("world", row.world);
  read_member(field, "base_key", row.base_key);
  read_member(field, "candidate_key", row.candidate_key);
  read_member(field, "plan_differs", row.plan_differs);
  read_list(field.at("metrics"), row.metrics, metric_from_json);
  read_list(field.at("explanations"), row.explanations, explanation_from_json);
  if (const auto others = field.find("other_differences")) {
    read_value(*others, row.other_differences);
  }
  return row;
}

Json status_to_json(const std::optional<PointStatus>& status) {
  return status ? Json(to_string(*status)) : Json(nullptr);
}

std::optional<PointStatus> status_or_null(const JsonField& field) {
  if (field.is_null()) return std::nullopt;
  return status_from_json(field);
}

Json uncompared_to_json(const UncomparedPoint& point) {
  return {{"key", point.key},
          {"model", point.model},
          {"policy", point.policy},
          {"schedule", to_string(point.schedule)},
          {"base_status", status_to_json(point.base_status)},
          {"candidate_status", status_to_json(point.candidate_status)},
          {"reason", text_or_null(point.reason)},
          {"identity_differences", list_to_json(point.identity_differences, difference_to_json)}};
}

UncomparedPoint uncompared_from_json(const JsonField& field) {
  UncomparedPoint point;
  read_member(field, "key", point.key);
  read_member(field, "model", point.model);
  read_member(field, "policy", point.policy);
  point.schedule = schedule_from_json(field.at("schedule"));
  point.base_status = status_or_null(field.at("base_status"));
  point.candidate_status = status_or_null(field.at("candidate_status"));
  read_text(field, "reason", point.reason);
  if (const auto differences = field.find("identity_differences")) {
    read_list(*differences, point.identity_differences, difference_from_json);
  }
  return point;
}

Json floor_to_json(const FloorRecord& floor) {
  return {{"metric", to_string(floor.metric)},
          {"relative_ratio", to_value(floor.relative_ratio)},
          {"absolute", number_to_json(floor.absolute)}};
}

FloorRecord floor_from_json(const JsonField& field) {
  FloorRecord floor;
  floor.metric = read_metric(field.at("metric"));
  read_member(field, "relative_ratio", floor.relative_ratio);
  read_member(field, "absolute", floor.absolute);
  return floor;
}

Json summary_to_json(const CompareRecord& record) {
  Json json = Json::object();
  for (const auto& [metric, verdicts] : record.summary) {
    Json& counts = json[std::string(to_string(metric))] = Json::object();
    for (const auto& [verdict, rows] : verdicts) counts[std::string(to_string(verdict))] = rows;
  }
  return json;
}

void read_summary(const JsonField& field, CompareRecord& record) {
  field.require_object();
  for (const auto& [name, verdicts] : field.json().items()) {
    std::map<std::string, int> counts;
    read_value(field.at(name), counts);
    const std::optional<Metric> metric = metric_from_string(name);
    if (!metric) continue;  // of a newer minor version
    for (const auto& [text, rows] : counts) {
      if (const auto verdict = compare_verdict_from_string(text)) {
        record.summary[*metric][*verdict] = rows;
      }
    }
  }
}

// Every row has the metrics of `floors`, in their order: tables have a column for each.
void require_metrics_of_floors(const JsonField& rows, const CompareRecord& record) {
  for (std::size_t index = 0; index < record.rows.size(); ++index) {
    const std::vector<MetricRecord>& metrics = record.rows[index].metrics;
    const bool is_same = std::equal(
        metrics.begin(), metrics.end(), record.floors.begin(), record.floors.end(),
        [](const auto& metric, const auto& floor) { return metric.metric == floor.metric; });
    if (!is_same) rows.at(index).at("metrics").fail("are not the metrics that `floors` names");
  }
}

}  // namespace

Json compare_to_json(const CompareRecord& record) {
  return {
      {"schema", schema_name(kCompareSchema)},
      {"base", source_to_json(record.base)},
      {"candidate", source_to_json(record.candidate)},
      {"environment_differences", list_to_json(record.environment_differences, difference_to_json)},
      {"false_alarm_ratio", to_value(record.false_alarm_ratio)},
      {"floors", list_to_json(record.floors, floor_to_json)},
      {"verdict", record.verdict},
      {"fail_on", record.fail_on},
      {"failed_on", record.failed_on},
      {"summary", summary_to_json(record)},
      {"rows", list_to_json(record.rows, row_to_json)},
      {"missing", list_to_json(record.missing, uncompared_to_json)},
      {"extra", list_to_json(record.extra, uncompared_to_json)},
      {"failed", list_to_json(record.failed, uncompared_to_json)}};
}

CompareRecord compare_from_json(const Json& json) {
  require_schema(json, kCompareSchema.kind);
  const JsonField field(json);
  CompareRecord record;
  record.base = source_from_json(field.at("base"));
  record.candidate = source_from_json(field.at("candidate"));
  read_list(field.at("environment_differences"), record.environment_differences,
            difference_from_json);
  read_member(field, "false_alarm_ratio", record.false_alarm_ratio);
  read_list(field.at("floors"), record.floors, floor_from_json);
  read_member(field, "verdict", record.verdict);
  read_member(field, "fail_on", record.fail_on);
  read_member(field, "failed_on", record.failed_on);
  read_summary(field.at("summary"), record);
  read_list(field.at("rows"), record.rows, row_from_json);
  require_metrics_of_floors(field.at("rows"), record);
  read_list(field.at("missing"), record.missing, uncompared_from_json);
  read_list(field.at("extra"), record.extra, uncompared_from_json);
  read_list(field.at("failed"), record.failed, uncompared_from_json);
  return record;
}

}  // namespace rematch
