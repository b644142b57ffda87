// Builds the data of every chart from a comparison's points, a compare record or a searched front.
// If the source has no data for a chart, the chart is empty: no drawn rows, no spots, no panels.
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

// fronts.cpp defines the next four functions, which build charts of fronts.

// Plots measured step time against measured peak. Points are named by their policies.
Plane measured_front(const std::vector<ComparedPoint>& points,
                     const std::optional<Bytes>& device_limit);

// The points of one report in a chart of several reports.
struct OverlaidPoints {
  std::string name;  // name of the report, shown in the legend
  const std::vector<ComparedPoint>* points = nullptr;
};

// Plots the measured points of several reports of the same model and setting, a colour for each
// report.
Plane overlaid_points(const std::vector<OverlaidPoints>& reports);

// Plots every baseline and the plans of `shown`, which holds indices of points. If a point was
// measured, a line joins its prediction to its measurement. Points are named by their numbers.
Plane searched_front(const FrontRecord& record, const std::vector<std::size_t>& shown);

// Draws a strip for each point. The strip has a cell for each layer, whose colour shows which ops
// the layer keeps.
Rows kept_layers(const FrontRecord& record, const std::vector<std::size_t>& shown);

// bars.cpp defines the next functions, which build charts of bars and ratios.

// Shows how many ops of a class ran in forward and recompute. Like a profiler, adds up all counted
// steps. A line marks the total of policy `none`.
Rows op_counts(const std::vector<ComparedPoint>& points, OpClass op_class);

// Shows how many bytes each holder has at a point's peak.
Rows peak_holders(const std::vector<ComparedPoint>& points);

// Shows the median time of each phase of a step.
Rows phase_times(const std::vector<ComparedPoint>& points);

// Shows the time of one step by op class, with a chart for each phase that has any time. All charts
// have the same scale. Uses kernel times from the device's activity records if any point has them,
// and otherwise op times.
std::vector<Rows> class_times(const std::vector<ComparedPoint>& points);

// Step time of each policy divided by the reference's.
Rows step_ratios(const std::vector<ComparedPoint>& points);

// Shows the ratio of candidate to base. Rows that differ come first, so that a shortened chart
// shows them.
Rows metric_ratios(const CompareRecord& record, Metric metric);

// curves.cpp defines the next two functions, which build charts of curves.

// Shows the loss by step. Points whose losses have the same bits share a curve, so correct
// checkpointing shows a single line. If the reference ran repeatedly, a band shows how far its runs
// differ. A second panel then shows the differences from the reference's first run.
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

// The styles of holders, from the bottom of a stack to its top. The last style is for bytes whose
// holder is unknown. Bytes that a policy can influence are coloured; other bytes are grey.
inline constexpr std::array kHolderStyles = {
    SeriesStyle{"frozen parameters", Paint::kGrid}, SeriesStyle{"parameters", Paint::kDarkGrey},
    SeriesStyle{"optimizer", Paint::kGrey},         SeriesStyle{"gradients", Paint::kLightGrey},
    SeriesStyle{"saved activations", Paint::kBlue}, SeriesStyle{"recomputed", Paint::kOrange},
    SeriesStyle{"temporaries", Paint::kTeal},       SeriesStyle{"unknown holders", Paint::kAxis}};
inline constexpr std::array kStackedHolders = {
    Holder::kFrozenParameters, Holder::kParameters,         Holder::kOptimizer, Holder::kGradients,
    Holder::kSavedActivations, Holder::kRecomputeTransient, Holder::kOther};

}  // namespace rematch::chart
