// The parts of a page: which key figures, figures and tables each kind of record shows.
#pragma once

#include <string>
#include <vector>

#include "policies/search/front/front_json.h"
#include "reports/record/compare.h"
#include "reports/record/environment.h"
#include "reports/render/comparison.h"
#include "reports/render/pages/elements.h"
#include "reports/render/sweep.h"

namespace rematch::page {

// A run report's comparison: key figures, its front, every policy, charts.
Part comparison_part(const Comparison& comparison, const Environment& environment);

// A compare record: verdict, ratios that differ, tables, what explains them.
Part compare_part(const CompareRecord& record);

// A searched front: key figures, the front, its points and what they keep.
Part front_part(const FrontRecord& record);

// One model of a sweep: policies against axes as tables and heat maps, fronts side by side, what
// failed, and each comparison behind a fold. `anchors`: of each shape's own part elsewhere on the
// page. Empty: there is none, and every comparison has a folded table in this part, under anchors
// that begin with `anchor`.
Part sweep_part(const SweepModel& model, const std::string& anchor,
                std::vector<std::string> anchors);

// Its heat maps of peak, step time and verdict, with a map for each combination of the axes but the
// first. `anchors`: of each shape, where a column leads.
void add_sweep_maps(const SweepModel& model, const std::vector<std::string>& anchors,
                    std::vector<Figure>& figures);

// A verdict as a cell of such a map; worse ones have higher levels.
HeatCell verdict_cell(const ComparedPoint& compared);

}  // namespace rematch::page
