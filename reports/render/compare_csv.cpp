#include <optional>
#include <string>
#include <vector>

#include "policies/trace/joined.h"
#include "reports/render/compare_table.h"
#include "reports/render/csv.h"
#include "reports/render/csv_cell.h"

namespace rematch {
namespace {

constexpr const char* kHeader =
    "comparison,base_report,candidate_report,model,device,dimensions,policy,schedule,metric,base,"
    "candidate,ratio,interval_low_ratio,interval_high_ratio,adjusted_p_value,verdict,note\r\n";

std::string number(const std::optional<double>& value) { return value ? csv_number(*value) : ""; }

std::string line_of(const std::vector<std::string>& cells) { return joined(cells, ",") + "\r\n"; }

std::string dimensions_of(const ComparedRow& row) {
  std::string text;
  for (const auto& [name, value] : row.dimensions) {
    text += (text.empty() ? "" : " ") + name + "=" + std::to_string(value);
  }
  return text;
}

std::vector<std::string> sources_of(const NamedCompare& source) {
  return {csv_text(source.name), csv_text(source.record.base.file),
          csv_text(source.record.candidate.file)};
}

std::string metric_line(const NamedCompare& source, const ComparedRow& row,
                        const MetricRecord& metric) {
  std::vector<std::string> cells = sources_of(source);
  for (const std::string& text :
       {row.model, row.device, dimensions_of(row), row.policy, std::string(to_string(row.schedule)),
        std::string(to_string(metric.metric))}) {
    cells.push_back(csv_text(text));
  }
  const auto& interval = metric.interval;
  for (const std::optional<double>& value :
       {metric.base, metric.candidate, metric.ratio,
        interval ? std::optional((*interval)[0]) : std::nullopt,
        interval ? std::optional((*interval)[1]) : std::nullopt, metric.adjusted_p_value}) {
    cells.push_back(number(value));
  }
  cells.emplace_back(to_string(metric.verdict));
  cells.push_back(csv_text(metric.note));
  return line_of(cells);
}

std::string uncompared_line(const NamedCompare& source, const UncomparedPoint& point,
                            const char* verdict) {
  std::vector<std::string> cells = sources_of(source);
  for (const std::string& text : {point.model, std::string(), std::string(), point.policy,
                                  std::string(to_string(point.schedule))}) {
    cells.push_back(csv_text(text));
  }
  cells.resize(cells.size() + 7);  // metric to p-value
  cells.emplace_back(verdict);
  const std::string words = identity_words(point);
  cells.push_back(
      csv_text(point.reason + (point.reason.empty() || words.empty() ? "" : "; ") + words));
  return line_of(cells);
}

}  // namespace

std::string render_csv(const std::vector<NamedCompare>& compares) {
  std::string text = kHeader;
  for (const NamedCompare& source : compares) {
    const CompareRecord& record = source.record;
    for (const ComparedRow& row : record.rows) {
      for (const MetricRecord& metric : row.metrics) text += metric_line(source, row, metric);
    }
    for (const UncomparedPoint& point : record.missing) {
      text += uncompared_line(source, point, "missing");
    }
    for (const UncomparedPoint& point : record.extra) {
      text += uncompared_line(source, point, "extra");
    }
    for (const UncomparedPoint& point : record.failed) {
      text += uncompared_line(source, point, "failed");
    }
  }
  return text;
}

}  // namespace rematch
