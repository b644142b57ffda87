#include "reports/render/page_table.h"

#include "reports/render/markup.h"
#include "reports/render/row.h"

namespace rematch {
namespace {

bool is_alarming(VerdictKind kind) {
  return kind == VerdictKind::kFailed || kind == VerdictKind::kDifferent ||
         kind == VerdictKind::kMiscounted;
}

// Longer cells are names and places, which may break anywhere to make room.
constexpr std::size_t kLongestOnOneLine = 20;

std::string head() {
  std::string text = "<thead><tr>";
  for (const Column& column : columns()) {
    text += column.alignment == Alignment::kRight ? "<th class=\"right\">" : "<th>";
    text += escape_markup(column.title) + "</th>";
  }
  return text + "</tr></thead>\n";
}

std::string body(const ComparedPoint& compared) {
  const Row row = make_row(compared);
  std::string text = "<tbody><tr>";
  for (std::size_t column = 0; column < row.cells.size(); ++column) {
    const bool right = columns()[column].alignment == Alignment::kRight;
    const bool whole = column > 0 && row.cells[column].size() <= kLongestOnOneLine;
    std::string classes = column == 0 ? "name" : right ? "right" : "";
    if (whole) classes += classes.empty() ? "whole" : " whole";
    text += classes.empty() ? "<td" : "<td class=\"" + classes + "\"";
    text += " data-name=\"" + escape_markup(columns()[column].title) + "\">" +
            escape_markup(row.cells[column]) + "</td>";
  }
  text += "</tr>\n<tr class=\"why\"><td colspan=\"" + std::to_string(row.cells.size()) + "\"><span";
  if (is_alarming(compared.verdict.kind)) text += " class=\"bad\"";
  return text + ">" + escape_markup(row.detail) + "</span></td></tr></tbody>\n";
}

}  // namespace

std::string page_table(const Comparison& comparison) {
  std::string text = "<table>" + head();
  for (const ComparedPoint& compared : comparison.points) text += body(compared);
  return text + "</table>\n";
}

}  // namespace rematch
