// Rows of cells with a line of text below each row, as ASCII columns or as Markdown.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policies/base/bytes.h"

namespace rematch {

enum class TableFormat : std::uint8_t { kText, kMarkdown };

namespace table {

inline constexpr const char* kNotMeasured = "-";

enum class Alignment : std::uint8_t { kLeft, kRight };

struct Column {
  std::string title;
  Alignment alignment = Alignment::kRight;
  // If the table is too wide, columns move into the detail line, the column with the highest number
  // first. A column with number 0 never moves.
  int yields = 0;
};

struct Row {
  std::vector<std::string> cells;  // one for each of the grid's columns
  std::string detail = {};         // text below the row
  bool is_alarming = false;        // true if a page highlights the detail
  std::string anchor = {};  // target of the first cell's link on a page; empty without a link
  std::string id = {};      // the row's own anchor on a page, to which its first cell links
  std::string folded = {};  // text that a page shows below the detail after the reader unfolds it
};

struct Grid {
  std::vector<Column> columns;
  // title of the last column in Markdown, which holds the details
  std::string detail_title = "verdict";
  std::vector<Row> rows = {};
};

// Drops every empty column. If `title` is given, drops only the column with this title, if it is
// empty.
void drop_empty_columns(Grid& grid, std::string_view title = "");

// The result ends with a newline. Lines have at most `width` characters, unless a single cell is
// wider.
std::string format_grid(const Grid& grid, TableFormat format, std::size_t width);

// Formats a paragraph above or below a grid: wrapped text, or a line of Markdown. Ends with a
// newline.
std::string format_line(const std::string& text, TableFormat format, std::size_t width);

// Removes every tag, entity, link and line break from `text`, because names come from files, and
// Markdown does not escape HTML.
std::string markdown_text(std::string_view text);

// Formats cells of measured quantities. In every table, a dash means "not measured".
std::string bytes_cell(const std::optional<Bytes>& bytes);
std::string duration_cell(const std::optional<std::chrono::nanoseconds>& time);

}  // namespace table
}  // namespace rematch
