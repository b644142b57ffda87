// The charts by name, each as one picture that stands alone.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "policies/plan/plan.h"
#include "policies/search/front/front_json.h"
#include "reports/record/compare.h"
#include "reports/record/environment.h"
#include "reports/render/charts/svg.h"
#include "reports/render/comparison.h"

namespace rematch::chart {

// "front", "memory", "attention", ...
std::vector<std::string> chart_names();

// Rejected: no such chart, or the comparison lacks what it shows.
std::variant<Picture, Rejected> draw_chart(const std::string& name, const Comparison& comparison,
                                           const Environment& environment);

// By the metric's name. Rejected: no such metric, or the record has no ratio of it.
std::variant<Picture, Rejected> draw_chart(const std::string& name, const CompareRecord& record);

// All points of a searched front. Rejected: a chart other than "front".
std::variant<Picture, Rejected> draw_chart(const std::string& name, const FrontRecord& record);

// The limit that a front is drawn against: the device's memory, on a CPU the host's.
std::optional<Bytes> memory_limit(const Comparison& comparison, const Environment& environment);

}  // namespace rematch::chart
