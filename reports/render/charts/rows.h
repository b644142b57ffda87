// Draws charts with one row per policy: a name, a value as text, and below them a lane with stacked
// bars, or with a dot and its interval.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "reports/render/charts/axis.h"
#include "reports/render/charts/svg.h"

namespace rematch::chart {

// The width of charts that are placed side by side on a page, or one below the other on a phone.
inline constexpr double kColumnWidth = 332;

struct Segment {
  double value = 0;
  Paint fill = Paint::kGrey;
  std::string hint;
};

struct Dot {
  double value = 0;
  std::optional<std::array<double, 2>> interval;
  Paint paint = Paint::kGrey;
};

struct Row {
  std::string name;
  std::string note;   // text next to the name, in grey
  std::string value;  // text at the right end of the row
  std::string hint;
  bool is_bold = false;
  std::vector<Segment> segments;  // a row without segments and without a dot was not measured
  std::optional<Dot> dot;

  double total() const;  // sum of the segments
};

struct Rows {
  std::string title;
  std::string words;       // a sentence that a page shows with the chart
  std::string axis_title;  // title of the axis; the unit is added
  Quantity quantity = Quantity::kCount;
  std::vector<Row> rows;
  std::vector<Key> legend;
  // a vertical line across all lanes at this value, which is 1 for ratios
  std::optional<double> reference;
  // minimum end of the axis, so that neighbouring charts can share a scale
  double at_least = 0;

  bool is_empty() const;  // true if no row has anything to draw
};

Picture draw(const Rows& chart);

}  // namespace rematch::chart
