// Ratios with their intervals around one: which differences are real, and how large.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "reports/render/charts/chart_point.h"
#include "reports/render/charts/row_frame.h"
#include "reports/render/svg.h"

namespace rematch {

struct ForestRow {
  RowText text;
  std::optional<double> ratio;  // absent: not measured
  std::optional<std::array<double, 2>> interval;
  std::string verdict;  // "slower", "higher", "faster" and "lower" stand out, others are grey
};

struct ForestChart {
  std::string title;
  std::string axis_title;
  std::vector<ForestRow> rows;
};

// What the bars mean, for the words beside a chart.
inline constexpr const char* kForestWords =
    "An interval that reaches 1 proves no difference; one with an arrow goes on.";

Picture draw_forest(const ForestChart& chart, double width);

// Step time of each policy over that of the reference; no rows if nothing was compared.
ForestChart step_ratio_chart(const std::vector<ChartPoint>& points);

}  // namespace rematch
