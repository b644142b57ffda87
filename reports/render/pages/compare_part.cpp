#include "reports/render/pages/compare_part.h"

#include <algorithm>

#include "reports/render/charts/builders.h"
#include "reports/render/pages/chart_figure.h"
#include "reports/render/tables/compare_table.h"

namespace rematch::page {
namespace {

// In every row that has the metric.
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

// Charts of nothing but ones would hide those that show something; they are a sentence.
std::string add_ratios(const CompareRecord& record, std::vector<Figure>& figures) {
  std::string same;
  for (const Metric metric : kMetrics) {
    if (is_same_everywhere(record, metric)) {
      same += (same.empty() ? "The same in every row: " : ", ") + words_of(metric);
      continue;
    }
    chart::Rows chart = chart::metric_ratios(record, metric);
    if (chart.rows.empty()) continue;
    const std::size_t num_rows = chart.rows.size();
    chart.rows.resize(std::min(num_rows, kMostChartRows));
    figures.push_back(
        chart_figure(chart, fold_of(chart.rows.size()),
                     left_out_words(chart.rows.size(), num_rows, "differences first")));
  }
  return same.empty() ? "" : same + ".";
}

// Without the columns that no row has anything in: those that only a GPU has.
table::Grid without_empty_columns(const table::Grid& grid) {
  table::Grid kept{{}, grid.detail_title, grid.rows};
  for (table::Row& row : kept.rows) row.cells.clear();
  for (std::size_t column = 0; column < grid.columns.size(); ++column) {
    if (std::all_of(grid.rows.begin(), grid.rows.end(), [&](const table::Row& row) {
          return row.cells[column] == table::kNotMeasured;
        })) {
      continue;
    }
    kept.columns.push_back(grid.columns[column]);
    for (std::size_t row = 0; row < grid.rows.size(); ++row) {
      kept.rows[row].cells.push_back(grid.rows[row].cells[column]);
    }
  }
  return kept;
}

void add_tables(const CompareRecord& record, std::vector<Figure>& figures) {
  const CompareGrids compared = compare_grids(record);
  for (const auto& [title, grid] : compared.grids) {
    figures.push_back({title, "Step time: candidate over base with its 95 % interval.",
                       page::grid(without_empty_columns(grid)), fold_of(grid.rows.size())});
  }
  if (compared.left_out_words.empty()) return;
  if (compared.grids.empty()) figures.push_back({"Rows"});
  figures.back().words += " " + compared.left_out_words;
}

void add_list(const char* title, const std::vector<std::string>& lines,
              std::vector<Figure>& figures) {
  if (!lines.empty()) figures.push_back({title, "", list(lines), fold_of(lines.size())});
}

}  // namespace

Part compare_part(const CompareRecord& record) {
  Part part;
  part.verdict = record.verdict;
  std::vector<std::string> environments;
  for (const NamedDifference& difference : record.environment_differences) {
    environments.push_back(difference.name + ": " + difference.base + " and " +
                           difference.candidate);
  }
  add_list("Measured in different environments", environments, part.figures);
  const std::string same = add_ratios(record, part.figures);
  part.facts = "Compares " + sources_words(record) + ". " + same + (same.empty() ? "" : " ") +
               noise_words(record);
  add_tables(record, part.figures);
  std::vector<std::string> explanations;
  for (const ComparedRow& row : record.rows) {
    for (const ExplanationRecord& explanation : row.explanations) {
      explanations.push_back(row.policy + " " + std::string(to_string(row.schedule)) + ", " +
                             words_of(explanation.metric) + ": " + explanation.sentence);
    }
  }
  add_list("What explains the differences", explanations, part.figures);
  add_list("Not compared", uncompared_lines(record), part.figures);
  return part;
}

}  // namespace rematch::page
