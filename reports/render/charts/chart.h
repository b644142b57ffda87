// The charts by name, each as one picture that stands alone.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "policies/plan/rejected.h"
#include "reports/record/environment.h"
#include "reports/render/comparison.h"
#include "reports/render/svg.h"

namespace rematch {

// "front", "memory", "attention", ...
const std::vector<std::string>& chart_names();

// Rejected: no such chart, or the comparison lacks what it shows.
std::variant<Picture, Rejected> draw_chart(const std::string& name, const Comparison& comparison,
                                           const Environment& environment);

// Widths of charts as files: of a front, and of charts with a row a point.
inline constexpr double kChartWidth = 900;
inline constexpr double kRowsWidth = 640;

// Nothing touches the edge of a file's picture.
Picture with_margin(const Picture& inner);

// The limit that a front is drawn against: the device's memory, on a CPU the host's.
std::optional<Bytes> memory_limit(const Comparison& comparison, const Environment& environment);

}  // namespace rematch
