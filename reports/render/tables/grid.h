// Rows of cells with a line of words below each, laid out as ASCII columns or as Markdown. Knows
// nothing of what the cells say.
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
  // If the table would be too wide, columns move into the detail line: the highest number
  // first. 0 stays.
  int yields = 0;
};

struct Row {
  std::vector<std::string> cells;  // one for each of the grid's columns
  std::string detail = {};         // words below the row
  bool is_alarming = false;        // a page makes the detail stand out
  std::string anchor = {};         // a page links the first cell to it; empty: no link
};

struct Grid {
  std::vector<Column> columns;
  std::string detail_title = "verdict";  // of Markdown's last column
  std::vector<Row> rows = {};
};

// Drops the column of this title, or any column where there is none, if no row has anything in it.
void drop_empty_columns(Grid& grid, std::string_view title = "");

// Newline at the end. Text fits `width` unless a single cell does not.
std::string format_grid(const Grid& grid, TableFormat format, std::size_t width);

// A paragraph beside a grid: wrapped text, or a line of Markdown. Newline at the end.
std::string format_line(const std::string& text, TableFormat format, std::size_t width);

// Names come from files, and Markdown passes HTML on: in the result no tag, entity, link or line
// break of `text` is left, only its words.
std::string markdown_text(std::string_view text);

// Cells of measured quantities: what was not measured is a dash in every table.
std::string bytes_cell(const std::optional<Bytes>& bytes);
std::string duration_cell(const std::optional<std::chrono::nanoseconds>& time);

}  // namespace table
}  // namespace rematch
