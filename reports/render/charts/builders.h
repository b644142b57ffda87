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

// Fronts are built in fronts.cpp.

// Measured step time against measured peak. Points are named by their policies.
Plane measured_front(const std::vector<ComparedPoint>& points,
                     const std::optional<Bytes>& device_limit);

// Every plan of `shown`, which holds indices of points, and every baseline. The prediction is
// joined to the measurement, if there is one. Points are named by their numbers.
Plane searched_front(const FrontRecord& record, const std::vector<std::size_t>& shown);

// Draws what each point saves: a strip of its layers, coloured by the ops that they keep.
Rows kept_layers(const FrontRecord& record, const std::vector<std::size_t>& shown);

// Bars and ratios are built in bars.cpp.

// Executed ops of a class in forward and recompute, summed over the counted steps as in a profiler.
// A line marks the total of `none`.
Rows op_counts(const std::vector<ComparedPoint>& points, OpClass op_class);

// The holders of the bytes at each point's peak.
Rows peak_holders(const std::vector<ComparedPoint>& points);

// Median times of a step's phases.
Rows phase_times(const std::vector<ComparedPoint>& points);

// Time of one step by op class, with a chart for each phase that has any time. All axes have the
// same length. Uses the device's own records if any point has them, else the timed ops.
std::vector<Rows> class_times(const std::vector<ComparedPoint>& points);

// Step time of each policy divided by the reference's.
Rows step_ratios(const std::vector<ComparedPoint>& points);

// Candidate over base. Rows that differ come first, so that a shortened chart shows them.
Rows metric_ratios(const CompareRecord& record, Metric metric);

// Curves are built in curves.cpp.

// Loss by step. Points whose losses have the same bits share a curve, so correct checkpointing
// shows a single line. If the reference ran repeatedly, a band shows how far its runs differ, and a
// second panel shows the differences from its first run.
Lines losses(const std::vector<ComparedPoint>& points);

// Bytes over one step by holder, with a panel for each point that has a timeline. All axes have the
// same length. A strip below each plot shows the phases.
Lines memory_timelines(const std::vector<ComparedPoint>& points);

// How a part of a bar or stack looks: its label and its colour.
struct Look {
  const char* words;
  Paint fill;
};
Key key_of(const Look& look);

// The looks of holders, from the bottom of a stack to its top, and then of bytes whose holder is
// unknown. Bytes that a policy can influence are coloured, the rest is grey.
inline constexpr std::array kHolderLooks = {
    Look{"frozen parameters", Paint::kGrid}, Look{"parameters", Paint::kDarkGrey},
    Look{"optimizer", Paint::kGrey},         Look{"gradients", Paint::kLightGrey},
    Look{"saved activations", Paint::kBlue}, Look{"recomputed", Paint::kOrange},
    Look{"temporaries", Paint::kTeal},       Look{"unknown holders", Paint::kAxis}};
inline constexpr std::array kStackedHolders = {
    Holder::kFrozenParameters, Holder::kParameters,         Holder::kOptimizer, Holder::kGradients,
    Holder::kSavedActivations, Holder::kRecomputeTransient, Holder::kOther};

}  // namespace rematch::chart
