// The rows of a compare record as forest charts, one a metric.
#pragma once

#include <string>
#include <variant>

#include "policies/plan/rejected.h"
#include "reports/record/compare.h"
#include "reports/render/charts/forest_chart.h"
#include "reports/render/svg.h"

namespace rematch {

// "peak allocated"
std::string words_of(Metric metric);

// Differences first, so that a short chart has them; otherwise in the record's order. No rows where
// the metric has no ratio.
ForestChart metric_forest(const CompareRecord& record, Metric metric);

// By the metric's name. Rejected: no such metric, or the record has no ratio of it.
std::variant<Picture, Rejected> draw_compare_chart(const std::string& name,
                                                   const CompareRecord& record);

}  // namespace rematch
