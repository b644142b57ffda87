// The grammar of charts with a row a policy: a name, a value in words, and below them a lane with
// stacked bars, or with a dot and its interval. Knows nothing of points and reports.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "reports/render/charts/axis.h"
#include "reports/render/charts/svg.h"

namespace rematch::chart {

// The width of charts that stand side by side on a page, and one below the other on a telephone.
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
  std::string note;   // beside the name, in grey
  std::string value;  // at the right end
  std::string hint;
  bool is_bold = false;
  std::vector<Segment> segments;  // neither segments nor dot: not measured, which the value says
  std::optional<Dot> dot;

  double total() const;  // of the segments
};

struct Rows {
  std::string title;
  std::string words;       // a sentence beside the chart
  std::string axis_title;  // the unit follows, where there is one
  Quantity quantity = Quantity::kCount;
  std::vector<Row> rows;
  std::vector<Key> legend;
  std::optional<double> reference;  // a line through all lanes; of ratios it is at 1
  double at_least = 0;              // the axis reaches this far, for charts side by side

  bool is_empty() const;  // no row has anything to draw
};

Picture draw(const Rows& chart);

}  // namespace rematch::chart
