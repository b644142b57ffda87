#include "reports/render/page_grid.h"

#include "reports/render/markup.h"

namespace rematch {
namespace {

// Longer cells are names and places, which may break anywhere to make room.
constexpr std::size_t kLongestOnOneLine = 20;
// Two lines of a telephone.
constexpr std::size_t kLongestWords = 100;

std::string head(const std::vector<Column>& columns) {
  std::string text = "<thead><tr>";
  for (const Column& column : columns) {
    text += column.alignment == Alignment::kRight ? "<th class=\"right\">" : "<th>";
    text += escape_markup(column.title) + "</th>";
  }
  return text + "</tr></thead>\n";
}

// Long words are cut after two lines on a narrow screen, until they are asked for.
std::string words_of(const std::string& detail, bool is_alarming) {
  std::string words = std::string("<span") + (is_alarming ? " class=\"bad\"" : "") + ">" +
                      escape_markup(detail) + "</span>";
  if (detail.size() <= kLongestWords) return words;
  return "<details class=\"words\"><summary>" + words + "</summary></details>";
}

std::string body(const std::vector<Column>& columns, const Row& row, bool is_alarming) {
  std::string text = row.detail.empty() ? "<tbody><tr class=\"alone\">" : "<tbody><tr>";
  for (std::size_t column = 0; column < row.cells.size(); ++column) {
    const bool right = columns[column].alignment == Alignment::kRight;
    const bool whole = column > 0 && row.cells[column].size() <= kLongestOnOneLine;
    std::string classes = column == 0 ? "name" : right ? "right" : "";
    if (whole) classes += classes.empty() ? "whole" : " whole";
    text += classes.empty() ? "<td>" : "<td class=\"" + classes + "\">";
    text += escape_markup(row.cells[column]) + "</td>";
  }
  text += "</tr>\n";
  if (!row.detail.empty()) {
    const std::string words = words_of(row.detail, is_alarming);
    text += "<tr class=\"why\"><td colspan=\"" + std::to_string(row.cells.size()) + "\">" + words +
            "</td></tr>";
  }
  return text + "</tbody>\n";
}

}  // namespace

std::string page_grid(const Grid& grid, const std::function<bool(std::size_t)>& is_alarming) {
  // In the order of tab keys, so that it scrolls without a mouse.
  std::string text = "<div class=\"scroll\" tabindex=\"0\"><table>" + head(grid.columns);
  for (std::size_t row = 0; row < grid.rows.size(); ++row) {
    text += body(grid.columns, grid.rows[row], is_alarming(row));
  }
  return text + "</table></div>\n";
}

}  // namespace rematch
