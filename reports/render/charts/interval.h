// The bar of a figure's interval. Where it reaches beyond the axis it ends in an arrow, so that one
// wide interval does not squeeze all other figures together.
#pragma once

#include <vector>

#include "reports/render/svg.h"

namespace rematch {

struct IntervalEnd {
  Position at;
  bool is_on_axis = true;
};

struct IntervalBar {
  IntervalEnd low;
  IntervalEnd high;
  Paint paint = Paint::kGrey;
  double width = 1.5;
};

// Along an axis of either direction. Ends on the axis have caps. What it covers is returned.
Box draw_interval(Picture& picture, const IntervalBar& interval);

// How far an axis goes beyond figures that are `span` apart: usual intervals, by the `reaches` from
// figure to end, have a place; those that reach further than `most` only if the figures' own axis
// is as long.
double room_for_intervals(double span, std::vector<double> reaches, double most);

}  // namespace rematch
