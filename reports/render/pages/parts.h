// The parts of a page: key figures, figures and tables for each kind of record.
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

// A run report's comparison: key figures, its front, every policy, charts. The anchors of its
// points start with `anchor`.
Part comparison_part(const PolicyComparison& comparison, const Environment& environment,
                     const std::string& anchor);

// A compare record: verdict, ratios that differ, tables, explanations.
Part compare_part(const CompareRecord& record);

// A searched front: key figures, the front, its points and the ops that they keep. `file` is the
// path of the front. The anchors of its points start with `anchor`: "f0-p5".
Part front_part(const FrontRecord& record, const std::string& file, const std::string& anchor);

// One model of a sweep: tables and heat maps of policies by axes, fronts side by side, and
// failures. `anchors` has the anchor of each comparison's own part of the page, in the order of
// model.shapes. If `anchors` is empty, adds a folded table for every comparison, with anchors that
// begin with `anchor`.
Part sweep_part(const SweepModel& model, const std::string& anchor,
                std::vector<std::string> anchors);

// Adds heat maps of peak, step time and verdict. The first axis gives the columns of a map; each
// combination of values of the other axes has its own map. `anchors` contains a link target for
// each of model.shapes.
void add_sweep_maps(const SweepModel& model, const std::vector<std::string>& anchors,
                    std::vector<Figure>& figures);

// Returns the verdict of a comparison as a cell of a sweep map. Worse verdicts have higher levels.
HeatCell verdict_cell(const ComparedPoint& compared);

}  // namespace rematch::page
