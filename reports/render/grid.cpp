#include "reports/render/grid.h"

#include <algorithm>
#include <string_view>

#include "reports/render/format.h"

namespace rematch {
namespace {

constexpr std::string_view kDetailIndent = "    ";

std::vector<std::size_t> widths_of(const Grid& grid) {
  std::vector<std::size_t> widths;
  for (std::size_t column = 0; column < grid.columns.size(); ++column) {
    std::size_t width = grid.columns[column].title.size();
    for (const Row& row : grid.rows) width = std::max(width, row.cells[column].size());
    widths.push_back(width);
  }
  return widths;
}

constexpr std::size_t kWideGap = 2;
constexpr std::size_t kNarrowGap = 1;

struct Layout {
  std::vector<std::size_t> widths;
  std::vector<bool> shown;  // the others are told in the detail line
  std::size_t gap = kWideGap;

  std::size_t total() const {
    std::size_t sum = 0;
    for (std::size_t column = 0; column < widths.size(); ++column) {
      if (shown[column]) sum += widths[column] + (sum == 0 ? 0 : gap);
    }
    return sum;
  }
};

Layout choose_layout(const Grid& grid, std::size_t width) {
  Layout layout{widths_of(grid), std::vector<bool>(grid.columns.size(), true)};
  for (int yields = 3; yields > 0 && layout.total() > width; --yields) {
    for (std::size_t column = 0; column < grid.columns.size(); ++column) {
      if (grid.columns[column].yields == yields) layout.shown[column] = false;
    }
  }
  if (layout.total() > width) layout.gap = kNarrowGap;
  return layout;
}

std::string pad(const std::string& text, std::size_t width, Alignment alignment) {
  const std::string space(width > text.size() ? width - text.size() : 0, ' ');
  return alignment == Alignment::kLeft ? text + space : space + text;
}

std::string text_line(const Grid& grid, const std::vector<std::string>& cells,
                      const Layout& layout) {
  std::string line;
  for (std::size_t column = 0; column < cells.size(); ++column) {
    if (!layout.shown[column]) continue;
    if (!line.empty()) line.append(layout.gap, ' ');
    line += pad(cells[column], layout.widths[column], grid.columns[column].alignment);
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

std::string wrapped(const std::string& text, std::string_view indent, std::size_t width) {
  std::string lines;
  for (const std::string& line : wrap(text, width - indent.size())) {
    lines.append(indent).append(line).append("\n");
  }
  return lines;
}

std::vector<std::string> titles(const Grid& grid) {
  std::vector<std::string> names;
  for (const Column& column : grid.columns) names.push_back(column.title);
  return names;
}

std::string text_table(const Grid& grid, std::size_t width) {
  const Layout layout = choose_layout(grid, width);
  std::string text = text_line(grid, titles(grid), layout);
  for (const Row& row : grid.rows) {
    text += text_line(grid, row.cells, layout);
    std::string detail = row.detail;
    for (std::size_t column = 0; column < row.cells.size(); ++column) {
      if (layout.shown[column] || row.cells[column] == kNotMeasured) continue;
      detail += (detail.empty() ? "" : "; ") + grid.columns[column].title + " " + row.cells[column];
    }
    if (!detail.empty()) text += wrapped(detail, kDetailIndent, width);
  }
  return text;
}

std::string markdown_line(const std::vector<std::string>& cells, const std::string& last) {
  std::string line = "|";
  for (const std::string& cell : cells) line.append(" ").append(cell).append(" |");
  return line + " " + last + " |\n";
}

// A `|` would end the cell.
std::string markdown_cell(const std::string& text) {
  std::string cell;
  for (const char letter : markdown_text(text)) {
    if (letter == '|') cell += '\\';
    cell += letter;
  }
  return cell;
}

std::string markdown_table(const Grid& grid) {
  std::string text = markdown_line(titles(grid), grid.detail_title);
  text += "|";
  for (const Column& column : grid.columns) {
    text += column.alignment == Alignment::kLeft ? " --- |" : " ---: |";
  }
  text += " --- |\n";
  for (const Row& row : grid.rows) {
    std::vector<std::string> cells;
    for (const std::string& cell : row.cells) cells.push_back(markdown_cell(cell));
    text += markdown_line(cells, markdown_cell(row.detail));
  }
  return text;
}

}  // namespace

std::string markdown_text(std::string_view text) {
  std::string safe;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char letter = text[at];
    if (letter == '<') {
      safe += "&lt;";
    } else if (letter == '>') {
      safe += "&gt;";
    } else if (letter == '&') {
      safe += "&amp;";
    } else if (letter == '(' && at > 0 && text[at - 1] == ']') {
      safe += "\\(";
    } else {
      safe += letter == '\n' || letter == '\r' ? ' ' : letter;
    }
  }
  return safe;
}

std::string format_grid(const Grid& grid, TableFormat format, std::size_t width) {
  return format == TableFormat::kText ? text_table(grid, width) : markdown_table(grid);
}

std::string format_line(const std::string& text, TableFormat format, std::size_t width) {
  return format == TableFormat::kText ? wrapped(text, "", width) : markdown_text(text) + "\n";
}

}  // namespace rematch
