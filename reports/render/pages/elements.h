// The elements of every page: key figures, titled figures, tables and pictures. Less important
// content is folded under its title. Text arguments are escaped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "reports/render/charts/rows.h"
#include "reports/render/charts/svg.h"
#include "reports/render/tables/grid.h"

namespace rematch::page {

enum class Fold : std::uint8_t { kOpen, kFolded };
enum class FigureWidth : std::uint8_t { kWhole, kColumn };

struct Figure {
  std::string title;
  std::string words;
  std::string content;  // markup
  Fold fold = Fold::kOpen;
  FigureWidth width = FigureWidth::kWhole;
};

// A key figure: its name, its value in large print, and a line of text below the value.
struct Tile {
  std::string name;
  std::string value;
  std::string more;
};

// The part of a page that shows one comparison, compare record or front.
struct Part {
  std::vector<Tile> tiles;
  std::string facts;    // a line of facts in grey, such as the machine
  std::string verdict;  // the verdict, a line in bold
  std::vector<Figure> figures;
};

// Folds tables and charts with many rows.
Fold fold_of(std::size_t num_rows);

// Returns text such as " Shown: 40 of 500 points, baselines first."; empty if all are shown.
std::string left_out_words(std::size_t num_shown, std::size_t num_all, const std::string& order);

// Converts text to markup. Replaces "+-" by a plus-minus sign, and keeps each number on one line
// with its unit.
std::string prose(const std::string& words);

std::string paragraph(const char* css_class,
                      const std::string& words);  // returns "" for empty text
std::string legend(const std::vector<chart::Key>& keys);
std::string picture(const chart::Picture& picture);  // markup of the picture and its legend
std::string list(const std::vector<std::string>& lines);

// The position of column titles: above the columns, or on a narrow screen beside each value. With
// kBesideOnNarrow, a wide row wraps instead of scrolling.
enum class CellTitles : std::uint8_t { kAbove, kBesideOnNarrow };

// Writes a table. A row's detail is in a separate row below it. A table that is too wide scrolls
// sideways and keeps its first column visible. Words are not broken.
std::string grid(const table::Grid& grid, CellTitles titles = CellTitles::kAbove);

// Arranges parts in columns. Parts after the first `most_open` are folded under a title such as "12
// more fronts".
std::string some_open(const std::vector<std::string>& parts, std::size_t most_open,
                      const std::string& others);

// Writes the part's tiles, facts and verdict, a link to each figure, and the figures. Consecutive
// narrow figures share columns; folded figures come last. The anchors of figures start with
// `anchor`.
std::string part(const Part& part, const std::string& anchor);

// Charts with more rows than this are cut, because they would be unreadable. Tables show all rows.
inline constexpr std::size_t kMaxChartRows = 40;

// Makes a figure from a chart of rows. The figure is one column wide. Its text is the chart's
// `words` and `more_words`.
Figure chart_figure(const chart::Rows& chart, Fold fold, const std::string& more_words = "");

// Makes a figure from a chart of rows that has no neighbours. Spreads the rows over three columns,
// with the same scale and one legend.
Figure spread_figure(const chart::Rows& chart, Fold fold, const std::string& more_words);

// A cell of a heat map, which is a table whose cells are coloured by their values.
struct HeatCell {
  std::string text;
  int level = 0;  // from -5, the best, to 5, the worst; 0 has no colour
};

struct HeatColumn {
  std::string title;
  std::string anchor;  // target of the title's link; empty without a link
};

struct HeatRow {
  std::string name;
  std::vector<HeatCell> cells;  // one for each column
};

struct HeatMap {
  std::string corner;  // names the columns: "tokens"
  std::vector<HeatColumn> columns;
  std::vector<HeatRow> rows;
};

inline constexpr int kStrongestHeat = 5;

std::string heat_map(const HeatMap& map);

}  // namespace rematch::page
