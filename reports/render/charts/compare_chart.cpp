#include "reports/render/charts/compare_chart.h"

#include <algorithm>

#include "policies/trace/joined.h"
#include "policies/trace/suggest.h"
#include "reports/render/charts/chart.h"
#include "reports/render/format.h"

namespace rematch {
namespace {

bool is_difference(CompareVerdict verdict) {
  return verdict != CompareVerdict::kSame && verdict != CompareVerdict::kNotMeasured;
}

ForestRow forest_row(const ComparedRow& row, const MetricRecord& metric) {
  ForestRow forest;
  forest.text.name = row.policy;
  forest.text.note = to_string(row.schedule);
  forest.text.value = format_fixed(*metric.ratio, 3);
  if (metric.interval) {
    forest.text.value += " [" + format_fixed((*metric.interval)[0], 3) + ", " +
                         format_fixed((*metric.interval)[1], 3) + "]";
  }
  forest.text.hint = row.model + " on " + row.device + "\n" + row.policy + " " +
                     std::string(to_string(row.schedule)) + "\n" + metric.note;
  forest.ratio = metric.ratio;
  forest.interval = metric.interval;
  forest.verdict = to_string(metric.verdict);
  return forest;
}

}  // namespace

std::string words_of(Metric metric) {
  std::string words(short_name(metric));
  std::replace(words.begin(), words.end(), '_', ' ');
  return words;
}

ForestChart metric_forest(const CompareRecord& record, Metric metric) {
  ForestChart chart{
      words_of(metric) + ", candidate over base", words_of(metric) + ", candidate / base", {}};
  for (const bool different : {true, false}) {
    for (const ComparedRow& row : record.rows) {
      for (const MetricRecord& measured : row.metrics) {
        if (measured.metric != metric || !measured.ratio) continue;
        if (is_difference(measured.verdict) != different) continue;
        chart.rows.push_back(forest_row(row, measured));
      }
    }
  }
  return chart;
}

std::variant<Picture, Rejected> draw_compare_chart(const std::string& name,
                                                   const CompareRecord& record) {
  std::vector<std::string> names;
  for (const Metric metric : kMetrics) names.emplace_back(short_name(metric));
  const std::optional<Metric> metric = metric_from_string(name);
  if (!metric) {
    return Rejected{"a compare record has no chart '" + name + "'" + did_you_mean(name, names) +
                    "; its charts are " + joined(names)};
  }
  const ForestChart chart = metric_forest(record, *metric);
  if (chart.rows.empty()) {
    return Rejected{"the compare record has no ratio of " + words_of(*metric) +
                    "; both reports must have measured it, and the base not as 0"};
  }
  return with_margin(draw_forest(chart, kRowsWidth));
}

}  // namespace rematch
