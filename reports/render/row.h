// One point as the cells of a comparison table, in words and figures; how they are laid out is the
// table's business.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reports/render/comparison.h"

namespace rematch {

inline constexpr const char* kNotMeasured = "-";

enum class Alignment : std::uint8_t { kLeft, kRight };

struct Column {
  std::string title;
  Alignment alignment = Alignment::kRight;
  // Where the table would be too wide, columns move into the detail line: the highest number
  // first. 0 stays.
  int yields = 0;
};

const std::vector<Column>& columns();

struct Row {
  std::vector<std::string> cells;  // as columns()
  std::string detail;              // the verdict, and what there is to say about the figures
};

Row make_row(const ComparedPoint& compared);

}  // namespace rematch
