// The part of a page for a run report's comparison: key figures, its front, every policy, charts.
#pragma once

#include "reports/record/compare.h"
#include "reports/record/environment.h"
#include "reports/render/comparison.h"
#include "reports/render/pages/elements.h"

namespace rematch::page {

Part comparison_part(const Comparison& comparison, const Environment& environment);

// The part of a page for a compare record: verdict, ratios that differ, tables, what explains them.

Part compare_part(const CompareRecord& record);

}  // namespace rematch::page
