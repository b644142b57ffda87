// Executed ops of one class: forward and recompute, one bar a policy. What a policy recomputes
// shows as the second half of its bar.
#pragma once

#include <vector>

#include "policies/trace/op_class.h"
#include "reports/render/charts/bar_chart.h"
#include "reports/render/charts/chart_point.h"

namespace rematch {

bool has_counts(const std::vector<ChartPoint>& points, OpClass op_class);

// Totals over the counted steps, as a profiler would count them. `none`'s total is a line.
BarChart count_chart(const std::vector<ChartPoint>& points, OpClass op_class);

}  // namespace rematch
