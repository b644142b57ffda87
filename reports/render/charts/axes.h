// Grid lines and tick labels around a plot; labels that would touch are left out.
#pragma once

#include "reports/render/scale.h"
#include "reports/render/svg.h"

namespace rematch {

inline constexpr double kTickSize = 12;  // of tick labels

// A chart below this width is laid out for a telephone: names above their lanes, fewer ticks.
inline constexpr double kNarrowChart = 450;

// Room that a y axis needs left of its plot.
double y_labels_width(const Axis& axis);

// Horizontal lines through `area`, labels left of it.
void draw_y_axis(Picture& picture, const Axis& axis, const Box& area);

enum class GridLines : std::uint8_t { kHorizontal, kVertical };

// Labels below `area`, and vertical lines through it if asked for.
void draw_x_axis(Picture& picture, const Axis& axis, const Box& area, GridLines lines);

// Where values of the axis are in `area`.
Scale x_scale(const Axis& axis, const Box& area);
Scale y_scale(const Axis& axis, const Box& area);

}  // namespace rematch
