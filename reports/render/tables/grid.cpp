#include "reports/render/tables/grid.h"

#include <algorithm>

#include "policies/base/format.h"

namespace rematch::table {
namespace {

struct Layout {
  std::vector<std::size_t> widths;
  std::vector<bool> is_shown;  // values of hidden columns are shown in the detail line
  std::size_t gap = 2;

  std::size_t total() const {
    std::size_t sum = 0;
    for (std::size_t column = 0; column < widths.size(); ++column) {
      if (is_shown[column]) sum += widths[column] + (sum == 0 ? 0 : gap);
    }
    return sum;
  }
};

Layout lay_out(const Grid& grid, std::size_t width) {
  constexpr int kMaxYields = 3;
  Layout layout;
  for (std::size_t column = 0; column < grid.columns.size(); ++column) {
    std::size_t widest = grid.columns[column].title.size();
    for (const Row& row : grid.rows) widest = std::max(widest, row.cells[column].size());
    layout.widths.push_back(widest);
    layout.is_shown.push_back(true);
  }
  for (int yields = kMaxYields; yields > 0 && layout.total() > width; --yields) {
    for (std::size_t column = 0; column < grid.columns.size(); ++column) {
      if (grid.columns[column].yields == yields) layout.is_shown[column] = false;
    }
  }
  if (layout.total() > width) layout.gap = 1;
  return layout;
}

std::string text_line(const Grid& grid, const std::vector<std::string>& cells,
                      const Layout& layout) {
  std::string line;
  for (std::size_t column = 0; column < cells.size(); ++column) {
    if (!layout.is_shown[column]) continue;
    if (!line.empty()) line.append(layout.gap, ' ');
    const std::string& cell = cells[column];
    const std::string space(layout.widths[column] - std::min(layout.widths[column], cell.size()),
                            ' ');
    line += grid.columns[column].alignment == Alignment::kLeft ? cell + space : space + cell;
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
  const Layout layout = lay_out(grid, width);
  std::string text = text_line(grid, titles(grid), layout);
  for (const Row& row : grid.rows) {
    text += text_line(grid, row.cells, layout);
    std::string detail = row.detail;
    for (std::size_t column = 0; column < row.cells.size(); ++column) {
      if (layout.is_shown[column] || row.cells[column] == kNotMeasured) continue;
      detail += (detail.empty() ? "" : "; ") + grid.columns[column].title + " " + row.cells[column];
    }
    if (!detail.empty()) text += wrapped(detail, "    ", width);
  }
  return text;
}

// Escapes `|`, which would end the cell.
std::string markdown_cell(const std::string& text) {
  std::string cell = " ";
  for (const char letter : markdown_text(text)) {
    if (letter == '|') cell += '\\';
    cell += letter;
  }
  return cell + " |";
}

std::string markdown_table(const Grid& grid) {
  std::string text = "|";
  std::string rule = "|";
  for (const Column& column : grid.columns) {
    text += " " + column.title + " |";
    rule += column.alignment == Alignment::kLeft ? " --- |" : " ---: |";
  }
  text += " " + grid.detail_title + " |\n" + rule + " --- |\n";
  for (const Row& row : grid.rows) {
    text += "|";
    for (const std::string& cell : row.cells) text += markdown_cell(cell);
    text += markdown_cell(row.detail) + "\n";
  }
  return text;
}

}  // namespace

void drop_empty_columns(Grid& grid, std::string_view title) {
  for (std::size_t column = grid.columns.size(); column-- > 0;) {
    if (!title.empty() && grid.columns[column].title != title) continue;
    if (std::any_of(grid.rows.begin(), grid.rows.end(),
                    [&](const Row& row) { return row.cells[column] != kNotMeasured; })) {
      continue;
    }
    const auto place = static_cast<std::ptrdiff_t>(column);
    grid.columns.erase(grid.columns.begin() + place);
    for (Row& row : grid.rows) row.cells.erase(row.cells.begin() + place);
  }
}

std::string format_grid(const Grid& grid, TableFormat format, std::size_t width) {
  return format == TableFormat::kText ? text_table(grid, width) : markdown_table(grid);
}

std::string format_line(const std::string& text, TableFormat format, std::size_t width) {
  return format == TableFormat::kText ? wrapped(text, "", width) : markdown_text(text) + "\n";
}

std::string markdown_text(std::string_view text) {
  std::string safe;
  char last = ' ';
  for (const char letter : text) {
    switch (letter) {
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '&':
        safe += "&amp;";
        break;
      case '(':
        safe += last == ']' ? "\\(" : "(";
        break;
      default:
        safe += letter == '\n' || letter == '\r' ? ' ' : letter;
    }
    last = letter;
  }
  return safe;
}

std::string bytes_cell(const std::optional<Bytes>& bytes) {
  return bytes ? format_bytes(*bytes) : kNotMeasured;
}

std::string duration_cell(const std::optional<std::chrono::nanoseconds>& time) {
  return time ? format_duration(*time) : kNotMeasured;
}

}  // namespace rematch::table
