// Predictions for a variant beside the measurements of its point, and where the two must agree.
// Pure.
#pragma once

#include <string>

#include "harness/run/variants.h"
#include "reports/record/environment.h"
#include "reports/record/point.h"

namespace rematch {

// Counts of `num_steps` steps, flops, and of a point with measured memory its peak and dead saves.
void add_prediction(const Variant& variant, int num_steps, PointRecord& point);

// Exactly: another count means that the plan, the engine or the prediction is wrong, and makes an
// ok point invalid. Fills the point's effect, which must be there if its counts are.
void check_counts(const Variant& variant, int num_steps, PointRecord& point);

// For a point with a step time: the rate that it implies, refused if no such device has it, and
// the share of the card's peak that this is. Model flops utilization (MFU) is that of PaLM's
// appendix B (Chowdhery et al. 2022, arXiv 2204.02311): flops of forward and backward, without what
// recompute repeats, over what the card could do in that time.
void add_flops(const Variant& variant, const Environment& environment, PointRecord& point);

}  // namespace rematch
