#include "reports/render/pages/elements.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "policies/base/format.h"
#include "reports/render/markup.h"

namespace rematch::page {
namespace {

constexpr std::size_t kMaxOpenRows = 20;
// On a narrow screen, a longer detail is cut after two lines until the reader unfolds it.
constexpr std::size_t kLongestWords = 100;
// a cell with at most this many characters stays on one line
constexpr std::size_t kLongestOnOneLine = 28;

std::string anchor_of(const std::string& part_anchor, std::size_t index) {
  return part_anchor + "-" + std::to_string(index);
}

std::string figure(const Figure& figure, const std::string& anchor) {
  const std::string title = "<h3>" + escape_markup(figure.title) + "</h3>";
  const std::string inside = paragraph("", figure.words) + figure.content;
  const std::string start = " id=\"" + anchor + "\">";
  if (figure.fold == Fold::kOpen) return "<figure" + start + title + "\n" + inside + "</figure>\n";
  return "<figure class=\"folded\"" + start + "<details><summary>" + title +
         "</summary>\n<div class=\"inside\">" + inside + "</div></details></figure>\n";
}

std::string in_columns(const std::string& figures) {
  return figures.empty() ? "" : "<div class=\"columns\">\n" + figures + "</div>\n";
}

std::string figures(const std::vector<Figure>& figures, const std::string& part_anchor) {
  std::string text;
  std::string open;
  std::string folded;
  const auto flush = [&] {
    text += in_columns(std::exchange(open, "")) + in_columns(std::exchange(folded, ""));
  };
  for (std::size_t index = 0; index < figures.size(); ++index) {
    const bool is_narrow = figures[index].width == FigureWidth::kColumn;
    if (!is_narrow) flush();
    std::string& group = !is_narrow ? text : figures[index].fold == Fold::kOpen ? open : folded;
    group += figure(figures[index], anchor_of(part_anchor, index));
  }
  flush();
  return text;
}

std::string links(const std::vector<Figure>& figures, const std::string& part_anchor) {
  std::string text;
  for (std::size_t index = 0; index < figures.size(); ++index) {
    text += "<a href=\"#" + anchor_of(part_anchor, index) + "\">" +
            escape_markup(figures[index].title) + "</a>\n";
  }
  return text.empty() ? "" : "<p class=\"links\">" + text + "</p>\n";
}

// Allows line breaks after punctuation in names and paths.
std::string breakable(const std::string& words) {
  std::string text;
  std::size_t from = 0;
  for (std::size_t at = 0; at + 1 < words.size(); ++at) {
    if (std::string_view(",=([/").find(words[at]) == std::string_view::npos) continue;
    text += escape_markup(words.substr(from, at + 1 - from)) + "<wbr>";
    from = at + 1;
  }
  return text + escape_markup(words.substr(from));
}

// Short cells are prose, where "+-" becomes a plus-minus sign. Long cells may break after
// punctuation.
std::string cell_markup(const std::string& cell) {
  return cell.size() <= kLongestOnOneLine ? prose(cell) : breakable(cell);
}

std::string row_words(const table::Row& row) {
  std::string words = std::string("<span") + (row.is_alarming ? " class=\"bad\">" : ">") +
                      prose(capitalized(row.detail)) + "</span>";
  if (!row.folded.empty()) {
    return "<details class=\"whole\"><summary>" + words + "</summary><span>" + prose(row.folded) +
           "</span></details>";
  }
  if (row.detail.size() <= kLongestWords) return words;
  return "<details class=\"words\"><summary>" + words + "</summary></details>";
}

// Returns a " data-title=..." attribute for a cell that has a value.
std::string title_beside(const table::Grid& grid, const table::Row& row, std::size_t column) {
  const std::string& cell = row.cells[column];
  if (column == 0 || cell.empty() || cell == table::kNotMeasured) return "";
  return " data-title=\"" + escape_markup(capitalized(grid.columns[column].title)) + "\"";
}

std::string row(const table::Grid& grid, const table::Row& row, CellTitles titles) {
  const std::string body = row.id.empty() ? "<tbody>" : "<tbody id=\"" + row.id + "\">";
  const std::string& target = row.anchor.empty() ? row.id : row.anchor;
  std::string text = body + (row.detail.empty() ? "<tr class=\"alone\">" : "<tr>");
  for (std::size_t column = 0; column < row.cells.size(); ++column) {
    const bool is_right = grid.columns[column].alignment == table::Alignment::kRight;
    const bool is_short = row.cells[column].size() <= kLongestOnOneLine;
    text += column == 0 ? "<td class=\"name\""
            : is_right  ? "<td class=\"right\""
            : is_short  ? "<td class=\"short\""
                        : "<td";
    if (titles == CellTitles::kBesideOnNarrow) text += title_beside(grid, row, column);
    text += '>';
    const bool is_link = column == 0 && !target.empty();
    if (is_link) text += "<a href=\"#" + target + "\">";
    text += cell_markup(row.cells[column]) + (is_link ? "</a></td>" : "</td>");
  }
  text += "</tr>\n";
  if (!row.detail.empty()) {
    text += "<tr class=\"why\"><td colspan=\"" + std::to_string(row.cells.size()) + "\">" +
            row_words(row) + "</td></tr>";
  }
  return text + "</tbody>\n";
}

}  // namespace

Fold fold_of(std::size_t num_rows) { return num_rows > kMaxOpenRows ? Fold::kFolded : Fold::kOpen; }

std::string left_out_words(std::size_t num_shown, std::size_t num_all, const std::string& order) {
  if (num_shown >= num_all) return "";
  return " Shown: " + format_part(num_shown, num_all) + " points, " + order + ".";
}

std::string prose(const std::string& words) {
  std::string markup;
  for (const std::string& word : words_with_units(words)) {
    if (!markup.empty()) markup += ' ';
    const std::size_t space = word.find(' ');
    markup += escape_markup(word.substr(0, space));
    if (space != std::string::npos) markup += "&nbsp;" + escape_markup(word.substr(space + 1));
  }
  constexpr std::string_view kAscii = "+- ";
  for (std::size_t at = markup.find(kAscii); at != std::string::npos; at = markup.find(kAscii)) {
    markup.replace(at, kAscii.size(), "&plusmn;");
  }
  return markup;
}

std::string paragraph(const char* css_class, const std::string& words) {
  if (words.empty()) return "";
  const std::string attribute = *css_class == 0 ? "" : std::string(" class=\"") + css_class + "\"";
  return "<p" + attribute + ">" + prose(words) + "</p>\n";
}

std::string legend(const std::vector<chart::Key>& keys) {
  std::string text;
  for (const chart::Key& key : keys) {
    text += "<span>" + chart::to_svg(key) + breakable(key.text) + "</span>\n";
  }
  return text.empty() ? "" : "<p class=\"legend\">" + text + "</p>\n";
}

std::string picture(const chart::Picture& picture) {
  const std::string content = legend(picture.legend) + chart::to_svg(picture);
  return picture.growth == 1 ? content : "<div class=\"plane\">" + content + "</div>\n";
}

std::string list(const std::vector<std::string>& lines) {
  std::string items;
  for (const std::string& line : lines) items += "<li>" + prose(line) + "</li>\n";
  return "<ul>\n" + items + "</ul>";
}

std::string grid(const table::Grid& grid, CellTitles titles) {
  // Makes the table focusable, so that the keyboard can scroll it.
  std::string text = titles == CellTitles::kAbove
                         ? "<div class=\"scroll\" tabindex=\"0\"><table><thead><tr>"
                         : "<div class=\"scroll wraps\" tabindex=\"0\"><table><thead><tr>";
  for (const table::Column& column : grid.columns) {
    text += column.alignment == table::Alignment::kRight ? "<th class=\"right\">" : "<th>";
    text += escape_markup(capitalized(column.title)) + "</th>";
  }
  text += "</tr></thead>\n";
  for (const table::Row& one : grid.rows) text += row(grid, one, titles);
  return text + "</table></div>\n";
}

std::string some_open(const std::vector<std::string>& parts, std::size_t most_open,
                      const std::string& others) {
  const auto joined = [&parts](std::size_t from, std::size_t to) {
    std::string text;
    for (std::size_t index = from; index < to; ++index) text += parts[index];
    return "<div class=\"columns\">\n" + text + "</div>\n";
  };
  if (parts.size() <= most_open) return joined(0, parts.size());
  return joined(0, most_open) + "<details><summary>" + std::to_string(parts.size() - most_open) +
         " more " + others + "</summary>\n" + joined(most_open, parts.size()) + "</details>\n";
}

std::string part(const Part& part, const std::string& anchor) {
  std::string tiles;
  for (const Tile& tile : part.tiles) {
    tiles += "<div class=\"tile\"><span>" + escape_markup(capitalized(tile.name)) + "</span><b>" +
             prose(tile.value) + "</b><span>" + prose(tile.more) + "</span></div>\n";
  }
  if (!tiles.empty()) tiles = "<div class=\"tiles\">\n" + tiles + "</div>\n";
  return tiles + paragraph("verdict", capitalized(part.verdict)) + paragraph("facts", part.facts) +
         links(part.figures, anchor) + figures(part.figures, anchor);
}

Figure chart_figure(const chart::Rows& chart, Fold fold, const std::string& more_words) {
  return {chart.title, chart.words + more_words, picture(draw(chart)), fold, FigureWidth::kColumn};
}

Figure spread_figure(const chart::Rows& chart, Fold fold, const std::string& more_words) {
  constexpr std::size_t kColumns = 3;
  const std::size_t num_rows = chart.rows.size();
  const std::size_t per_column = (num_rows + kColumns - 1) / kColumns;
  chart::Rows column = chart;
  column.legend.clear();  // the figure has one legend, above the columns
  for (const chart::Row& row : chart.rows) column.at_least = std::max(column.at_least, row.total());
  std::string columns;
  for (std::size_t from = 0; from < num_rows; from += per_column) {
    const std::size_t to = std::min(from + per_column, num_rows);
    column.rows.clear();
    for (std::size_t index = from; index < to; ++index) column.rows.push_back(chart.rows[index]);
    column.title = chart.title + ", " + column.rows.front().name + " to " + column.rows.back().name;
    columns += picture(draw(column));
  }
  return {chart.title, chart.words + more_words, legend(chart.legend) + in_columns(columns), fold};
}

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
