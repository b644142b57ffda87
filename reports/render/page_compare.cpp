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

void add_forests(const CompareRecord& record, std::vector<PageFigure>& figures) {
  for (const Metric metric : kMetrics) {
    ForestChart chart = metric_forest(record, metric);
    if (chart.rows.empty() || is_same_everywhere(record, metric)) continue;
    const std::size_t all = chart.rows.size();
    if (all > kMostChartRows) chart.rows.resize(kMostChartRows);
    const char* words =
        metric == Metric::kStepTime ? kForestWords : "Exact: every difference is one.";
    figures.push_back({chart.title,
                       words + words_left_out(chart.rows.size(), all, "differences first"),
                       for_both_widths([&chart](double width) { return draw_forest(chart, width); },
                                       kHalfPageWidth),
                       fold_of(chart.rows.size()), FigureWidth::kHalf});
  }
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

void add_tables(const CompareRecord& record, std::vector<PageFigure>& figures) {
  const CompareGrids compared = compare_grids(record);
  for (const CompareGrid& grid : compared.grids) {
    figures.push_back({grid.title, "Step time: candidate over base with its 95 % interval.",
                       page_grid(with_content(grid.grid), [](std::size_t) { return false; }),
                       fold_of(grid.grid.rows.size())});
  }
  if (compared.left_out == 0) return;
  const std::string words =
      std::to_string(compared.left_out) + " rows without a difference are not shown.";
  if (compared.grids.empty())
    figures.push_back({"Rows", words, ""});
  else
    figures.back().words += " " + words;
}

void add_list(const std::string& title, const std::vector<std::string>& lines,
              std::vector<PageFigure>& figures) {
  if (lines.empty()) return;
  std::string items;
  for (const std::string& line : lines) items += "<li>" + escape_markup(line) + "</li>\n";
  figures.push_back({title, "", "<ul>\n" + items + "</ul>", fold_of(lines.size())});
}

std::vector<std::string> explanations(const CompareRecord& record) {
  std::vector<std::string> lines;
  for (const ComparedRow& row : record.rows) {
    for (const ExplanationRecord& explanation : row.explanations) {
      lines.push_back(row.policy + " " + std::string(to_string(row.schedule)) + ", " +
                      words_of(explanation.metric) + ": " + explanation.sentence);
    }
  }
  return lines;
}

std::vector<std::string> lines_of(const std::vector<UncomparedPoint>& points) {
  std::vector<std::string> lines;
  for (const UncomparedPoint& point : points) {
    lines.push_back(point.model + ": " + point.policy + " " +
                    std::string(to_string(point.schedule)) +
                    (point.reason.empty() ? "" : ", " + point.reason) +
                    (point.identity_differences.empty() ? "" : ": " + identity_words(point)));
  }
  return lines;
}

std::vector<std::string> environments(const CompareRecord& record) {
  std::vector<std::string> lines;
  for (const NamedDifference& difference : record.environment_differences) {
    lines.push_back(difference.name + ": " + difference.base + " and " + difference.candidate);
  }
  return lines;
}

}  // namespace

PagePart page_compare(const CompareRecord& record) {
  PagePart part;
  part.head = "<p class=\"facts\">Base " + escape_markup(record.base.file) + ", candidate " +
              escape_markup(record.candidate.file) + "</p>\n<p class=\"verdict\">" +
              escape_markup(record.verdict) + "</p>\n" + same_metrics(record);
  add_list("Measured in different environments", environments(record), part.figures);
  add_forests(record, part.figures);
  add_tables(record, part.figures);
  add_list("What explains the differences", explanations(record), part.figures);
  add_list("Only in the base", lines_of(record.missing), part.figures);
  add_list("Only in the candidate", lines_of(record.extra), part.figures);
  add_list("Not finished on a side", lines_of(record.failed), part.figures);
  return part;
}

}  // namespace rematch
