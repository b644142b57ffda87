// Axes map quantities to positions, with ticks at round numbers. Also draws intervals along an
// axis.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "reports/render/charts/svg.h"

namespace rematch::chart {

// kBytes is in bytes, and kDuration in nanoseconds. kRatio has a logarithmic axis, so that 1/2 and
// 2 are equally far from 1.
enum class Quantity : std::uint8_t { kBytes, kDuration, kCount, kNumber, kRatio };

struct Tick {
  double value = 0;
  std::string text;
};

struct Axis {
  double low = 0;
  double high = 1;
  std::vector<Tick> ticks;  // ascending, between low and high
  std::string unit;         // "MiB", "ms"; empty for counts, numbers and ratios
  bool is_logarithmic = false;
  double start = 0;  // position of `low`
  double end = 1;    // position of `high`

  // Returns the position of a value. A value beyond the axis is drawn at the end of the axis.
  double operator()(double value) const;
  bool holds(double value) const { return value >= low && value <= high; }
  // Returns a title with the unit: "peak allocated, MiB".
  std::string titled(const std::string& words) const;
};

// Makes an axis that contains [low, high], with at most `most_ticks` + 2 ticks. Corrects ends that
// are equal or not finite, and ends of a ratio that are not above 0.
Axis make_axis(Quantity quantity, double low, double high, int most_ticks);

// The lowest and the highest of a list of values.
struct Range {
  double low = INFINITY;
  double high = -INFINITY;

  void include(double value);
  double span() const { return high - low; }
};

struct Estimate {
  double value = 0;
  std::array<double, 2> interval = {0, 0};
};

// Returns the range of the values, extended at both ends to show their intervals. The extension is
// at most max(range / 2, min(2 * median interval, most_room)), because longer intervals would
// squeeze the values together.
Range range_of(const std::vector<Estimate>& estimates, double most_room);

// Draws an interval as a bar. `across` is the bar's position on the other axis. An arrow marks an
// end that lies beyond the axis.
enum class Direction : std::uint8_t { kAcross, kUpright };
void draw_interval(Picture& picture, const Axis& axis, const std::array<double, 2>& interval,
                   double across, Direction direction, Paint paint);

// Returns the width that the labels of a y axis need to the left of the plot.
double y_labels_width(const Axis& axis, double growth = 1);

// Both functions place the axis along `area`, and draw its grid lines and labels. Labels that would
// touch another label are omitted.
enum class GridLines : std::uint8_t { kNone, kDrawn };
void draw_x_axis(Picture& picture, Axis& axis, const Box& area, GridLines lines);
void draw_y_axis(Picture& picture, Axis& axis, const Box& area);

// The area of a plot and its axes, which draw_x_axis() and draw_y_axis() place along the area.
struct Plot {
  Box area;
  Axis x;
  Axis y;

  Position operator()(const Position& value) const { return {x(value.x), y(value.y)}; }
};

// Draws the axes of a plot with their titles in grey. The y axis' title is above the plot and
// starts at `left`. The distance from the plot to the x axis is `foot`.
void draw_axes(Picture& picture, Plot& plot, double left, const std::string& y_title,
               const std::string& x_title, GridLines lines, double foot = 0);

// Distances from the bottom of a plot to the baseline of its x labels, and to the baseline of the x
// axis' title.
inline constexpr double kLabelsBelow = 17;
inline constexpr double kTitleBelow = 35;

}  // namespace rematch::chart
