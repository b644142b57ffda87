#include "reports/record/compare.h"

#include <algorithm>

#include "policies/base/field_value.h"
#include "policies/base/json.h"

namespace rematch {
namespace {

// Every row must list the metrics of `floors` in the same order, because each metric is a column of
// a table.
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

std::string_view short_name(Metric metric) {
  std::string_view name = to_string(metric);
  for (const std::string_view unit : {"_ns", "_bytes"}) {
    if (metric != Metric::kCollectiveBytes && name.ends_with(unit)) name.remove_suffix(unit.size());
  }
  return name;
}

std::optional<Metric> metric_from_name(std::string_view name) {
  for (const Metric metric : kAll<Metric>) {
    if (name == to_string(metric) || name == short_name(metric)) return metric;
  }
  return std::nullopt;
}

Json compare_to_json(const CompareRecord& record) { return document_of(kCompareSchema, record); }

CompareRecord compare_from_json(const Json& json) {
  require_schema(json, kCompareSchema.kind);
  const JsonField field(json);
  CompareRecord record;
  read_value(field, record);
  require_metrics_of_floors(field.at("rows"), record);
  return record;
}

}  // namespace rematch
