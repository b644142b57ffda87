#include "reports/render/pages/heat_map.h"

#include <algorithm>
#include <cstdlib>

#include "reports/render/format.h"
#include "reports/render/markup.h"

namespace rematch::page {
namespace {

std::string heat_cell(const HeatCell& cell) {
  const int strength = std::min(std::abs(cell.level), kStrongestHeat);
  const std::string tint = strength == 0 ? ""
                                         : (cell.level < 0 ? " class=\"g" : " class=\"w") +
                                               std::to_string(strength) + "\"";
  return "<td" + tint + ">" + escape_markup(cell.text) + "</td>";
}

std::string heat_column(const HeatColumn& column) {
  const std::string title = escape_markup(column.title);
  if (column.anchor.empty()) return "<th>" + title + "</th>";
  return "<th><a href=\"#" + column.anchor + "\">" + title + "</a></th>";
}

}  // namespace

std::string heat_map(const HeatMap& map) {
  std::string text = "<div class=\"scroll\" tabindex=\"0\"><table class=\"heat\"><thead><tr><th>" +
                     escape_markup(capitalized(map.corner)) + "</th>";
  for (const HeatColumn& column : map.columns) text += heat_column(column);
  text += "</tr></thead>\n<tbody>\n";
  for (const HeatRow& row : map.rows) {
    text += "<tr><td class=\"name\">" + escape_markup(row.name) + "</td>";
    for (const HeatCell& cell : row.cells) text += heat_cell(cell);
    text += "</tr>\n";
  }
  return text + "</tbody></table></div>\n";
}

}  // namespace rematch::page
