// The elements of every page: key figures, titled figures, tables, pictures. Less important content
// is folded under its title. These functions escape their text arguments.
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

// A key figure: its name, its value in large print, and a line below.
struct Tile {
  std::string name;
  std::string value;
  std::string more;
};

// The part of a page that shows one comparison, compare record or front.
struct Part {
  std::vector<Tile> tiles;
  std::string facts;    // a line of facts in grey
  std::string verdict;  // the verdict, a line in bold
  std::vector<Figure> figures;
};

// Folds tables and charts with many rows.
Fold fold_of(std::size_t num_rows);

// Returns text such as " Shown: 40 of 500 points, baselines first."; empty if all are shown.
std::string left_out_words(std::size_t num_shown, std::size_t num_all, const std::string& order);

// Converts text to markup. "+-" becomes a plus-minus sign, and a number stays on one line with its
// unit.
std::string prose(const std::string& words);

std::string paragraph(const char* css_class,
                      const std::string& words);  // returns "" for empty text
std::string legend(const std::vector<chart::Key>& keys);
std::string picture(const chart::Picture& picture);  // markup of the picture and its legend
std::string list(const std::vector<std::string>& lines);

// Where a cell's title is: above its column, or on a narrow screen beside its value. With titles
// beside values, a row wraps instead of scrolling.
enum class CellTitles : std::uint8_t { kAbove, kBesideOnNarrow };

// Writes a table. The detail of a row gets a row of its own below it. A table that is too wide
// scrolls sideways and keeps its first column visible. No word is broken.
std::string grid(const table::Grid& grid, CellTitles titles = CellTitles::kAbove);

// Arranges parts in columns. Parts after the first `most_open` are folded under a title such as "12
// more fronts".
std::string some_open(const std::vector<std::string>& parts, std::size_t most_open,
                      const std::string& others);

// Writes the part's tiles, facts and verdict, a link to each figure, and the figures. Consecutive
// narrow figures share columns; folded figures come last. The anchors of figures start with
// `anchor`.
std::string part(const Part& part, const std::string& anchor);

// A chart with more rows than this is unreadable. Tables have all rows.
inline constexpr std::size_t kMaxChartRows = 40;

// Makes a figure from a chart of rows. The figure is one column wide and has the chart's title, and
// the chart's `words` followed by `more_words`.
Figure chart_figure(const chart::Rows& chart, Fold fold, const std::string& more_words = "");

// A cell of a heat map: a table whose cells are tinted by the quality of their values. The values
// are still shown as text.
struct HeatCell {
  std::string text;
  int level = 0;  // -5 is best, 5 is worst; 0 has no tint
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
