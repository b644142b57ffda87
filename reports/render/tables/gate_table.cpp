#include "reports/render/tables/gate_table.h"

namespace rematch {
namespace {

using table::Alignment;
using table::Grid;
using table::kNotMeasured;

std::string detail_of(const CheckRecord& check) {
  std::string detail = check.reason;
  if (!check.noise) return detail;
  if (!check.noise->largest_difference) {
    if (detail.find("not measured") == std::string::npos) detail += ". Noise: not measured";
  } else if (!check.noise->detects.empty()) {
    detail += ". Detects " + check.noise->detects;
  }
  return detail;
}

// Adds a row for each check, with the cells of `first` in front.
void add_rows(Grid& grid, const std::vector<std::string>& first,
              const std::vector<CheckRecord>& checks) {
  for (const CheckRecord& check : checks) {
    table::Row& row = grid.rows.emplace_back(table::Row{first, detail_of(check)});
    for (const std::string& cell : {check.check, check.tier.empty() ? kNotMeasured : check.tier,
                                    std::string(to_string(check.verdict))}) {
      row.cells.push_back(cell);
    }
  }
}

std::string count_of(const std::vector<std::string>& files) {
  return files.size() == 1 ? files.front() : std::to_string(files.size()) + " curves";
}

std::string render_curves(const CurvesRecord& curves, GateVerdict verdict, TableFormat format,
                          std::size_t width) {
  Grid grid{
      {{"check", Alignment::kLeft}, {"tier", Alignment::kLeft}, {"verdict", Alignment::kLeft}},
      "reason"};
  add_rows(grid, {}, curves.checks);
  return table::format_grid(grid, format, width) + "\n" +
         table::format_line(std::string(to_string(verdict)) + ": " + count_of(curves.losses) +
                                " against " + count_of(curves.reference_losses) + " over " +
                                std::to_string(curves.compared_steps) + " steps, " +
                                std::to_string(curves.first_step) + " to " +
                                std::to_string(curves.last_step) + ".",
                            format, width);
}

}  // namespace

std::string render_gate(const GateRecord& record, TableFormat format, std::size_t width) {
  if (record.curves) return render_curves(*record.curves, record.verdict, format, width);
  Grid grid{{{"policy", Alignment::kLeft},
             {"schedule", Alignment::kLeft},
             {"reference", Alignment::kLeft},
             {"check", Alignment::kLeft},
             {"tier", Alignment::kLeft},
             {"verdict", Alignment::kLeft}},
            "reason"};
  const bool all = record.points.size() <= kMaxPassingPoints;
  std::size_t passing = 0;
  for (const GatedPoint& point : record.points) {
    passing += point.verdict == GateVerdict::kPass ? 1 : 0;
    if (!all && point.verdict == GateVerdict::kPass) continue;
    const std::string& reference = point.reference_policy;
    add_rows(grid,
             {point.policy, std::string(to_string(point.schedule)),
              reference.empty() ? kNotMeasured : reference},
             point.checks);
  }
  std::string text = grid.rows.empty() ? "" : table::format_grid(grid, format, width) + "\n";
  if (record.points.empty()) {
    text += table::format_line("No point of the report is gated; see --policy.", format, width);
  }
  text +=
      table::format_line(std::string(to_string(record.verdict)) + ": " + std::to_string(passing) +
                             " of " + std::to_string(record.points.size()) + " points pass.",
                         format, width);
  return text;
}

}  // namespace rematch
