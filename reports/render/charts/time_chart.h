// Where the time of a step goes: by phase, and inside a phase by op class, one bar a policy.
#pragma once

#include <cstdint>
#include <vector>

#include "policies/trace/phase.h"
#include "reports/render/charts/bar_chart.h"
#include "reports/render/charts/chart_point.h"

namespace rematch {

bool has_times(const std::vector<ChartPoint>& points);

// Median times of the phases of a step.
BarChart phase_time_chart(const std::vector<ChartPoint>& points);

// Whose times a step's classes are: the device's own records where any point has them.
enum class TimeSource : std::uint8_t { kOps, kKernels };
TimeSource class_time_source(const std::vector<ChartPoint>& points);

// Of one step: by class in each phase that has any, on axes of one length.
std::vector<BarChart> class_time_charts(const std::vector<ChartPoint>& points);

}  // namespace rematch
