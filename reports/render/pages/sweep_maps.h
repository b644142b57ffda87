// Policies against axes of a sweep as heat maps: peak, step time and verdict.
#pragma once

#include <string>
#include <vector>

#include "reports/render/pages/elements.h"
#include "reports/render/sweep.h"

namespace rematch::page {

// A verdict as a cell; worse ones have higher levels.
HeatCell verdict_cell(const ComparedPoint& compared);

// Three figures, with a map for each combination of the axes but the first. `anchors`: of each
// shape, where a column leads.
void add_sweep_maps(const SweepModel& model, const std::vector<std::string>& anchors,
                    std::vector<Figure>& figures);

}  // namespace rematch::page
