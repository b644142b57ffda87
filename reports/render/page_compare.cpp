#include "reports/render/page_compare.h"

#include <algorithm>
#include <vector>

#include "reports/render/charts/forest_chart.h"
#include "reports/render/compare_table.h"
#include "reports/render/format.h"
#include "reports/render/markup.h"
#include "reports/render/page_figure.h"

namespace rematch {
namespace {

constexpr std::size_t kMostRows = 40;

bool is_difference(CompareVerdict verdict) {
  return verdict != CompareVerdict::kSame && verdict != CompareVerdict::kNotMeasured;
}

std::string words_of(Metric metric) {
  std::string words(short_name(metric));
  std::replace(words.begin(), words.end(), '_', ' ');
  return words;
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

// Differences first, so that a short chart has them; otherwise in the record's order.
ForestChart forest_of(const CompareRecord& record, Metric metric) {
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

std::string forests(const CompareRecord& record) {
  std::string text;
  for (const Metric metric : kMetrics) {
    ForestChart chart = forest_of(record, metric);
    if (chart.rows.empty()) continue;
    const std::size_t all = chart.rows.size();
    if (all > kMostRows) chart.rows.resize(kMostRows);
    text +=
        page_figure(chart.title,
                    std::string(metric == Metric::kStepTime
                                    ? "An interval that reaches 1 proves no difference; "
                                      "one with an arrow goes on."
                                    : "Exact: every difference is one.") +
                        words_left_out(chart.rows.size(), all, "differences first"),
                    for_both_widths([&chart](double width) { return draw_forest(chart, width); },
                                    kHalfPageWidth));
  }
  return text.empty() ? "" : "<div class=\"pair\">\n" + text + "</div>\n";
}

std::string item(const std::string& text) { return "<li>" + escape_markup(text) + "</li>\n"; }

std::string list_of(const std::string& title, const std::string& items) {
  if (items.empty()) return "";
  return "<figure><h3>" + escape_markup(title) + "</h3>\n<ul>\n" + items + "</ul></figure>\n";
}

std::string explanations(const CompareRecord& record) {
  std::string items;
  for (const ComparedRow& row : record.rows) {
    for (const ExplanationRecord& explanation : row.explanations) {
      items += item(row.policy + " " + std::string(to_string(row.schedule)) + ", " +
                    words_of(explanation.metric) + ": " + explanation.sentence);
    }
  }
  return list_of("What explains the differences", items);
}

std::string uncompared(const std::string& title, const std::vector<UncomparedPoint>& points) {
  std::string items;
  for (const UncomparedPoint& point : points) {
    items += item(point.model + ": " + point.policy + " " + std::string(to_string(point.schedule)) +
                  (point.reason.empty() ? "" : ", " + point.reason));
  }
  return list_of(title, items);
}

std::string environments(const CompareRecord& record) {
  std::string items;
  for (const EnvironmentDifference& difference : record.environment_differences) {
    items += item(difference.name + ": " + difference.base + " and " + difference.candidate);
  }
  return list_of("Measured in different environments", items);
}

}  // namespace

std::string page_compare(const CompareRecord& record) {
  return "<p class=\"facts\">Base " + escape_markup(record.base.file) + ", candidate " +
         escape_markup(record.candidate.file) + "</p>\n<p class=\"verdict\">" +
         escape_markup(record.verdict) + "</p>\n" + environments(record) + forests(record) +
         explanations(record) + uncompared("Only in the base", record.missing) +
         uncompared("Only in the candidate", record.extra) +
         uncompared("Not finished on a side", record.failed);
}

}  // namespace rematch
