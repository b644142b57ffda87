// The parts that every page is made of: key figures, figures with a title, tables, pictures. What a
// reader can do without at first is folded under its title. Text that is passed in is escaped.
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

// A key figure: its name, its value in large, and a line below.
struct Tile {
  std::string name;
  std::string value;
  std::string more;
};

// One comparison, compare record or front of a page.
struct Part {
  std::vector<Tile> tiles;
  std::string facts;    // a line in grey
  std::string verdict;  // a line in bold
  std::vector<Figure> figures;
};

// Tables and charts with more rows are folded: nobody reads them in passing.
Fold fold_of(std::size_t num_rows);

// " Shown: 40 of 500 points, baselines first."; empty if all are shown.
std::string left_out_words(std::size_t num_shown, std::size_t num_all, const std::string& order);

// Words as markup, with a plus-minus sign where ASCII has "+-", and no line break before a unit.
std::string prose(const std::string& words);

std::string paragraph(const char* css_class, const std::string& words);  // empty for no words
std::string legend(const std::vector<chart::Key>& keys);
std::string picture(const chart::Picture& picture);  // with its legend
std::string list(const std::vector<std::string>& lines);

// The place of a cell's title: above its column, or on a narrow screen beside its value, so that a
// row wraps instead of scrolling.
enum class CellTitles : std::uint8_t { kAbove, kBesideOnNarrow };

// The words of a row stand in a row below it. A table that is too wide scrolls sideways under its
// first column; no word is broken.
std::string grid(const table::Grid& grid, CellTitles titles = CellTitles::kAbove);

// Columns of these, those beyond the first `most_open` behind a fold: "12 more fronts".
std::string some_open(const std::vector<std::string>& parts, std::size_t most_open,
                      const std::string& others);

// Tiles, words, a link to each figure, and the figures. Narrow figures that follow each other stand
// in columns, folded ones last. Anchors of figures start with `anchor`.
std::string part(const Part& part, const std::string& anchor);

// A chart of rows as a figure of a page.

// More rows than a chart can be read with; tables have all.
inline constexpr std::size_t kMostChartRows = 40;

// As wide as a column, with the chart's title and words, and `more_words` after them.
Figure chart_figure(const chart::Rows& chart, Fold fold, const std::string& more_words = "");

// A table whose cells are tinted by how good they are; their figures stay text.

struct HeatCell {
  std::string text;
  int level = 0;  // -5, best, to 5, worst; 0 has no tint
};

struct HeatColumn {
  std::string title;
  std::string anchor;  // the title links to it; empty: no link
};

struct HeatRow {
  std::string name;
  std::vector<HeatCell> cells;  // one for each column
};

struct HeatMap {
  std::string corner;  // what the columns are: "tokens"
  std::vector<HeatColumn> columns;
  std::vector<HeatRow> rows;
};

inline constexpr int kStrongestHeat = 5;

std::string heat_map(const HeatMap& map);

}  // namespace rematch::page
