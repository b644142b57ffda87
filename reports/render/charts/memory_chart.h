// Bytes over one step, stacked by holder, with the peak marked; one panel a policy.
#pragma once

#include <vector>

#include "reports/render/charts/chart_point.h"
#include "reports/render/charts/legend.h"
#include "reports/render/svg.h"

namespace rematch {

bool has_timeline(const ChartPoint& charted);

// The most bytes that any of the timelines reaches: panels side by side share their axis.
double highest_timeline(const std::vector<ChartPoint>& points);

// Below the plot, a strip says by colour which phase each op is of.
Picture draw_memory(const ChartPoint& charted, double highest, double width);

std::vector<LegendEntry> memory_legend();

// All panels in one picture with their legend, as many side by side as `columns`.
Picture draw_memory_panels(const std::vector<ChartPoint>& points, int columns);

}  // namespace rematch
