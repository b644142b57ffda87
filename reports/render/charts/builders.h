// Builds every chart from a comparison's points, a compare record or a searched front. Without
// data, the chart is empty: it has no rows, spots or panels.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "policies/search/front/front_json.h"
#include "reports/record/compare.h"
#include "reports/render/charts/lines.h"
#include "reports/render/charts/plane.h"
#include "reports/render/charts/rows.h"
#include "reports/render/comparison.h"

namespace rematch::chart {

// The next four functions build charts of fronts. They are in fronts.cpp.

// Plots measured step time against measured peak. Points are named by their policies.
Plane measured_front(const std::vector<ComparedPoint>& points,
                     const std::optional<Bytes>& device_limit);

// The points of one report in a chart of several reports.
struct OverlaidPoints {
  std::string name;  // name of the report, shown in the legend
  const std::vector<ComparedPoint>* points = nullptr;
};

// Plots the measured points of several reports of the same model and setting. Each report has its
// own colour.
Plane overlaid_points(const std::vector<OverlaidPoints>& reports);

// Plots every baseline and the points whose indices are in `shown`. A line joins the prediction and
// the measurement of a measured point. Points are named by their numbers.
Plane searched_front(const FrontRecord& record, const std::vector<std::size_t>& shown);

// Draws a strip for each point, with one cell per layer. The colour of a cell shows which ops the
// layer keeps.
Rows kept_layers(const FrontRecord& record, const std::vector<std::size_t>& shown);

// The next functions build charts of bars and ratios. They are in bars.cpp.

// Shows how many ops of a class ran in forward and recompute, summed over all counted steps. A line
// marks the total of policy `none`.
Rows op_counts(const std::vector<ComparedPoint>& points, OpClass op_class);

// Shows the bytes at each point's peak, by holder.
Rows peak_holders(const std::vector<ComparedPoint>& points);

// Shows the median time of each phase of a step.
Rows phase_times(const std::vector<ComparedPoint>& points);

// Shows the time of one step by op class, with a chart for each phase that has times. All charts
// have the same scale. Uses kernel times from the device's activity records if any point has them,
// and otherwise op times.
std::vector<Rows> class_times(const std::vector<ComparedPoint>& points);

// Step time of each policy divided by the reference's.
Rows step_ratios(const std::vector<ComparedPoint>& points);

// Shows the ratio of candidate to base. Rows that differ come first, because a long chart is cut.
Rows metric_ratios(const CompareRecord& record, Metric metric);

// The next two functions build charts of curves. They are in curves.cpp.

// Shows the loss by step. Points whose losses have the same bits share a curve. If the reference
// ran repeatedly, a band shows how much its runs differ, and a second panel shows all losses minus
// the reference's first run.
Lines losses(const std::vector<ComparedPoint>& points);

// Shows the bytes over one step by holder, with a panel for each point that has a timeline. All
// panels have the same scale. A strip below each plot shows the phases.
Lines memory_timelines(const std::vector<ComparedPoint>& points);

// The label and the colour of one part of a bar or of a stack.
struct SeriesStyle {
  const char* words;
  Paint fill;
};
Key key_of(const SeriesStyle& style);

// The styles of holders, from the bottom of a stack to its top. The last style is for bytes with an
// unknown holder. Bytes that a policy can influence are coloured; other bytes are grey.
inline constexpr std::array kHolderStyles = {
    SeriesStyle{"frozen parameters", Paint::kGrid}, SeriesStyle{"parameters", Paint::kDarkGrey},
    SeriesStyle{"optimizer", Paint::kGrey},         SeriesStyle{"gradients", Paint::kLightGrey},
    SeriesStyle{"saved activations", Paint::kBlue}, SeriesStyle{"recomputed", Paint::kOrange},
    SeriesStyle{"temporaries", Paint::kTeal},       SeriesStyle{"unknown holders", Paint::kAxis}};
inline constexpr std::array kStackedHolders = {
    Holder::kFrozenParameters, Holder::kParameters,         Holder::kOptimizer, Holder::kGradients,
    Holder::kSavedActivations, Holder::kRecomputeTransient, Holder::kOther};

}  // namespace rematch::chart
