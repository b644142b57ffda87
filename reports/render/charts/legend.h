// A line of markers with words, broken where the width ends.
#pragma once

#include <string>
#include <vector>

#include "reports/render/svg.h"

namespace rematch {

struct LegendEntry {
  MarkerKind marker = MarkerKind::kSquare;
  Paint fill = Paint::kClear;
  Paint stroke = Paint::kClear;
  std::string text;
};

inline constexpr double kLegendSize = 12;  // of its text

// As high as it needs to be.
Picture draw_legend(const std::vector<LegendEntry>& entries, double width);

}  // namespace rematch
