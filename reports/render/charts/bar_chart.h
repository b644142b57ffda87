// Horizontal bars stacked from segments, one bar a policy.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reports/render/charts/legend.h"
#include "reports/render/charts/row_frame.h"
#include "reports/render/scale.h"
#include "reports/render/svg.h"

namespace rematch {

struct BarSegment {
  double value = 0;
  Paint fill = Paint::kGrey;
  std::string hint;
};

struct Bar {
  RowText text;
  std::vector<BarSegment> segments;  // none: not measured, which the value says
};

struct BarChart {
  std::string title;
  std::string axis_title;  // the unit follows, where there is one
  Quantity quantity = Quantity::kCount;
  std::vector<Bar> bars;
  std::vector<LegendEntry> legend;
  std::optional<double> reference;  // a line through all lanes
  double at_least = 0;              // the axis reaches this far, for charts side by side
};

Picture draw_bars(const BarChart& chart, double width);

}  // namespace rematch
