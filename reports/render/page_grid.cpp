#include "reports/render/page_grid.h"

#include "reports/render/markup.h"

namespace rematch {
namespace {

// Longer cells are names and places, which may break anywhere to make room.
constexpr std::size_t kLongestOnOneLine = 20;

std::string head(const std::vector<Column>& columns) {
  std::string text = "<thead><tr>";
  for (const Column& column : columns) {
    text += column.alignment == Alignment::kRight ? "<th class=\"right\">" : "<th>";
    text += escape_markup(column.title) + "</th>";
  }
  return text + "</tr></thead>\n";
}

std::string body(const std::vector<Column>& columns, const Row& row, bool is_alarming) {
  std::string text = row.detail.empty() ? "<tbody><tr class=\"alone\">" : "<tbody><tr>";
  for (std::size_t column = 0; column < row.cells.size(); ++column) {
    const bool right = columns[column].alignment == Alignment::kRight;
    const bool whole = column > 0 && row.cells[column].size() <= kLongestOnOneLine;
    std::string classes = column == 0 ? "name" : right ? "right" : "";
    if (whole) classes += classes.empty() ? "whole" : " whole";
    text += classes.empty() ? "<td" : "<td class=\"" + classes + "\"";
    text += " data-name=\"" + escape_markup(columns[column].title) + "\">" +
            escape_markup(row.cells[column]) + "</td>";
  }
  text += "</tr>\n";
  if (!row.detail.empty()) {
    text += "<tr class=\"why\"><td colspan=\"" + std::to_string(row.cells.size()) + "\"><span";
    if (is_alarming) text += " class=\"bad\"";
    text += ">" + escape_markup(row.detail) + "</span></td></tr>";
  }
  return text + "</tbody>\n";
}

}  // namespace

std::string page_grid(const Grid& grid, const std::function<bool(std::size_t)>& is_alarming) {
  std::string text = "<table>" + head(grid.columns);
  for (std::size_t row = 0; row < grid.rows.size(); ++row) {
    text += body(grid.columns, grid.rows[row], is_alarming(row));
  }
  return text + "</table>\n";
}

}  // namespace rematch
