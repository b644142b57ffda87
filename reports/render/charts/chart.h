// Draws the chart with a given name as a standalone picture.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "policies/base/rejected.h"
#include "policies/search/front/front_json.h"
#include "reports/record/compare.h"
#include "reports/record/environment.h"
#include "reports/render/charts/svg.h"
#include "reports/render/comparison.h"

namespace rematch::chart {

// Returns the names: "front", "memory", "attention", ...
std::vector<std::string> chart_names();

// Returns Rejected for an unknown chart, or if the comparison lacks the chart's data.
std::variant<Picture, Rejected> draw_chart(const std::string& name,
                                           const PolicyComparison& comparison,
                                           const Environment& environment);

// Draws the ratios of the metric with this name. Returns Rejected for an unknown metric, or if the
// record has no ratio of this metric.
std::variant<Picture, Rejected> draw_chart(const std::string& name, const CompareRecord& record);

// Draws all points of a searched front. Returns Rejected for every chart except "front".
std::variant<Picture, Rejected> draw_chart(const std::string& name, const FrontRecord& record);

// Returns the memory limit that a front shows: the GPU's memory or, on the CPU, the host's memory.
std::optional<Bytes> memory_limit(const PolicyComparison& comparison,
                                  const Environment& environment);

}  // namespace rematch::chart
