// The fronts of a sweep's comparisons side by side, on shared axes of ratios to the reference.
#pragma once

#include <vector>

#include "reports/render/pages/elements.h"
#include "reports/render/sweep.h"

namespace rematch::page {

// No figure where no comparison has both peak and step time.
void add_sweep_fronts(const SweepModel& model, std::vector<Figure>& figures);

}  // namespace rematch::page
