#include "reports/record/compare.h"

#include <algorithm>

#include "policies/base/field_value.h"
#include "policies/base/json.h"

namespace rematch {
namespace {

// In the order of the enumerators.
constexpr std::array<std::string_view, kMetrics.size()> kNames = {
    "step_time_ns",        "peak_allocated_bytes",
    "peak_reserved_bytes", "executed_ops",
    "recomputed_ops",      "kernel_count",
    "recomputed_flops",    "collectives",
    "collective_bytes",    "loss"};
constexpr std::array<std::string_view, kMetrics.size()> kShortNames = {
    "step_time",    "peak_allocated",   "peak_reserved", "executed_ops",     "recomputed_ops",
    "kernel_count", "recomputed_flops", "collectives",   "collective_bytes", "loss"};
constexpr std::array<std::string_view, 8> kCompareVerdicts = {
    "faster", "slower", "same", "unsure", "lower", "higher", "different", "not_measured"};

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

std::string_view to_string(Metric metric) { return kNames.at(static_cast<std::size_t>(metric)); }

std::string_view short_name(Metric metric) {
  return kShortNames.at(static_cast<std::size_t>(metric));
}

std::optional<Metric> metric_from_string(std::string_view name) {
  for (const Metric metric : kMetrics) {
    if (name == to_string(metric) || name == short_name(metric)) return metric;
  }
  return std::nullopt;
}

std::string_view to_string(CompareVerdict verdict) {
  return kCompareVerdicts.at(static_cast<std::size_t>(verdict));
}

std::optional<CompareVerdict> compare_verdict_from_string(std::string_view text) {
  for (std::size_t index = 0; index < kCompareVerdicts.size(); ++index) {
    if (text == kCompareVerdicts.at(index)) return static_cast<CompareVerdict>(index);
  }
  return std::nullopt;
}

Json to_value(Metric metric) { return to_string(metric); }
Json to_value(CompareVerdict verdict) { return to_string(verdict); }

void read_value(const JsonField& field, Metric& metric) {
  const std::optional<Metric> known = metric_from_string(field.string());
  if (!known) field.fail("'" + field.string() + "' is not a metric that this build knows");
  metric = *known;
}

void read_value(const JsonField& field, CompareVerdict& verdict) {
  const std::optional<CompareVerdict> known = compare_verdict_from_string(field.string());
  if (!known) field.fail("'" + field.string() + "' is not a verdict");
  verdict = *known;
}

Json to_value(const std::map<Metric, std::map<CompareVerdict, int>>& summary) {
  Json json = Json::object();
  for (const auto& [metric, verdicts] : summary) {
    Json& counts = json[std::string(to_string(metric))] = Json::object();
    for (const auto& [verdict, rows] : verdicts) counts[std::string(to_string(verdict))] = rows;
  }
  return json;
}

// Metrics and verdicts of a newer minor version are left out.
void read_value(const JsonField& field, std::map<Metric, std::map<CompareVerdict, int>>& summary) {
  std::map<std::string, std::map<std::string, int>> named;
  read_value(field, named);
  for (const auto& [name, verdicts] : named) {
    const std::optional<Metric> metric = metric_from_string(name);
    if (!metric) continue;
    for (const auto& [text, rows] : verdicts) {
      if (const auto verdict = compare_verdict_from_string(text)) summary[*metric][*verdict] = rows;
    }
  }
}

Json compare_to_json(const CompareRecord& record) {
  Json json = {{"schema", schema_name(kCompareSchema)}};
  write_fields(json, record);
  return json;
}

CompareRecord compare_from_json(const Json& json) {
  require_schema(json, kCompareSchema.kind);
  const JsonField field(json);
  CompareRecord record;
  read_value(field, record);
  require_metrics_of_floors(field.at("rows"), record);
  return record;
}

}  // namespace rematch
