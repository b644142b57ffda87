// The data of every chart, built from a comparison's points, a compare record or a searched front.
// A chart that its source has nothing for is empty: no rows that draw anything, no spots, no
// panels.
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

// fronts.cpp -------------------------------------------------------------------------------------

// Measured step time against measured peak; points are named by their policies.
Plane measured_front(const std::vector<ComparedPoint>& points,
                     const std::optional<Bytes>& device_limit);

// Every plan of `shown`, indices of points, and every baseline: the prediction joined to the
// measurement, if there is one. Points are named by their numbers.
Plane searched_front(const FrontRecord& record, const std::vector<std::size_t>& shown);

// The saves of each point: a strip of its layers, coloured by the ops that they keep.
Rows kept_layers(const FrontRecord& record, const std::vector<std::size_t>& shown);

// bars.cpp ---------------------------------------------------------------------------------------

// Executed ops of a class in forward and recompute, totals over the counted steps as a profiler
// would count them. `none`'s total is a line.
Rows op_counts(const std::vector<ComparedPoint>& points, OpClass op_class);

// The holders of the bytes at each point's peak.
Rows peak_holders(const std::vector<ComparedPoint>& points);

// Median times of a step's phases.
Rows phase_times(const std::vector<ComparedPoint>& points);

// Time of one step by op class, a chart for each phase that has any, on axes of one length. The
// device's own records are the source where any point has them, else the timed ops.
std::vector<Rows> class_times(const std::vector<ComparedPoint>& points);

// Step time of each policy over that of the reference.
Rows step_ratios(const std::vector<ComparedPoint>& points);

// Candidate over base, differences first, so that a short chart has them.
Rows metric_ratios(const CompareRecord& record, Metric metric);

// curves.cpp -------------------------------------------------------------------------------------

// Loss by step. Points whose losses have the same bits are one curve: where checkpointing is right
// there is a single line. If the reference ran repeatedly, a band shows how far its runs differ,
// and a second panel shows the differences to its first run.
Lines losses(const std::vector<ComparedPoint>& points);

// Bytes over one step by holder, a panel for each point with a timeline, on axes of one length. A
// strip below each plot tells the phases.
Lines memory_timelines(const std::vector<ComparedPoint>& points);

// A part of a bar or of a stack, by its words and colour.
struct Look {
  const char* words;
  Paint fill;
};
Key key_of(const Look& look);

// How holders look, in a stack's order from the bottom, and at last bytes whose holder is unknown.
// Bytes that a policy decides about are coloured, the rest are grey.
inline constexpr std::array kHolderLooks = {
    Look{"frozen parameters", Paint::kGrid}, Look{"parameters", Paint::kDarkGrey},
    Look{"optimizer", Paint::kGrey},         Look{"gradients", Paint::kLightGrey},
    Look{"saved activations", Paint::kBlue}, Look{"recomputed", Paint::kOrange},
    Look{"temporaries", Paint::kTeal},       Look{"unknown holders", Paint::kAxis}};
inline constexpr std::array kStackedHolders = {
    Holder::kFrozenParameters, Holder::kParameters,         Holder::kOptimizer, Holder::kGradients,
    Holder::kSavedActivations, Holder::kRecomputeTransient, Holder::kOther};

}  // namespace rematch::chart
