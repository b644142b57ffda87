#include "reports/render/page_compare.h"

#include <algorithm>
#include <vector>

#include "reports/render/charts/compare_chart.h"
#include "reports/render/compare_table.h"
#include "reports/render/format.h"
#include "reports/render/markup.h"
#include "reports/render/page_figure.h"
#include "reports/render/page_grid.h"

namespace rematch {
namespace {

constexpr std::size_t kMostRows = 40;

// In every row that has it.
bool is_same_everywhere(const CompareRecord& record, Metric metric) {
  bool is_measured = false;
  for (const ComparedRow& row : record.rows) {
    for (const MetricRecord& measured : row.metrics) {
      if (measured.metric != metric || measured.verdict == CompareVerdict::kNotMeasured) continue;
      if (measured.verdict != CompareVerdict::kSame) return false;
      is_measured = true;
    }
  }
  return is_measured;
}

// Charts of nothing but ones would hide those that show something.
std::string same_metrics(const CompareRecord& record) {
  std::string names;
  for (const Metric metric : kMetrics) {
    if (!is_same_everywhere(record, metric)) continue;
    names += (names.empty() ? "" : ", ") + words_of(metric);
  }
  if (names.empty()) return "";
  return "<p class=\"facts\">The same in every row: " + escape_markup(names) + ".</p>\n";
}

std::string forests(const CompareRecord& record) {
  std::string text;
  for (const Metric metric : kMetrics) {
    ForestChart chart = metric_forest(record, metric);
    if (chart.rows.empty() || is_same_everywhere(record, metric)) continue;
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

// Without the columns that no row has anything in: what only a GPU has.
Grid with_content(const Grid& grid) {
  Grid kept = grid;
  kept.columns.clear();
  for (Row& row : kept.rows) row.cells.clear();
  for (std::size_t column = 0; column < grid.columns.size(); ++column) {
    if (std::all_of(grid.rows.begin(), grid.rows.end(),
                    [column](const Row& row) { return row.cells[column] == kNotMeasured; })) {
      continue;
    }
    kept.columns.push_back(grid.columns[column]);
    for (std::size_t row = 0; row < grid.rows.size(); ++row) {
      kept.rows[row].cells.push_back(grid.rows[row].cells[column]);
    }
  }
  return kept;
}

std::string tables(const CompareRecord& record) {
  const CompareGrids compared = compare_grids(record);
  std::string text;
  for (const CompareGrid& grid : compared.grids) {
    text += page_figure(grid.title, "Step time: candidate over base with its 95 % interval.",
                        page_grid(with_content(grid.grid), [](std::size_t) { return false; }));
  }
  if (compared.left_out == 0) return text;
  return text + "<p class=\"facts\">" + std::to_string(compared.left_out) +
         " rows without a difference are not shown.</p>\n";
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
                  (point.reason.empty() ? "" : ", " + point.reason) +
                  (point.identity_differences.empty() ? "" : ": " + identity_words(point)));
  }
  return list_of(title, items);
}

std::string environments(const CompareRecord& record) {
  std::string items;
  for (const NamedDifference& difference : record.environment_differences) {
    items += item(difference.name + ": " + difference.base + " and " + difference.candidate);
  }
  return list_of("Measured in different environments", items);
}

}  // namespace

std::string page_compare(const CompareRecord& record) {
  return "<p class=\"facts\">Base " + escape_markup(record.base.file) + ", candidate " +
         escape_markup(record.candidate.file) + "</p>\n<p class=\"verdict\">" +
         escape_markup(record.verdict) + "</p>\n" + environments(record) + same_metrics(record) +
         forests(record) + tables(record) + explanations(record) +
         uncompared("Only in the base", record.missing) +
         uncompared("Only in the candidate", record.extra) +
         uncompared("Not finished on a side", record.failed);
}

}  // namespace rematch
