// The part of a page for one model of a sweep: policies against axes as tables and heat maps,
// fronts side by side, what failed, and each comparison behind a fold.
#pragma once

#include <string>
#include <vector>

#include "reports/render/pages/elements.h"
#include "reports/render/sweep.h"

namespace rematch::page {

// `anchors`: of each shape's own part elsewhere on the page. Empty: there is none, and every
// comparison has a folded table in this part, under anchors that begin with `anchor`.
Part sweep_part(const SweepModel& model, const std::string& anchor,
                std::vector<std::string> anchors);

// The fronts of a sweep's comparisons side by side, on shared axes of ratios to the reference.

// No figure where no comparison has both peak and step time.
void add_sweep_fronts(const SweepModel& model, std::vector<Figure>& figures);

}  // namespace rematch::page
