// A table whose cells are tinted by how good they are; their figures stay text.
#pragma once

#include <string>
#include <vector>

namespace rematch::page {

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
