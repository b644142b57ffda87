// Predictions for a variant beside the measurements of its point, and where the two must agree.
// Pure.
#pragma once

#include <optional>
#include <string_view>

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

// Matmul flops per second that the device reaches at its highest clock with every unit busy:
// generous on purpose, since only the impossible is to be refused: a measured rate above it is an
// error of measurement, not a fast step. Absent where the device is not known well enough.
// `threads` are those of a CPU run.
std::optional<double> most_flops_per_second(const Environment& environment, std::string_view device,
                                            std::string_view dtype, int threads);

// The dense peak on the data sheet of the card, what MFU is a share of. Float32 is without TF32, as
// LibTorch computes unless told otherwise. Absent: no sheet of this card is here, a CPU, or TF32
// was forced.
std::optional<double> sheet_flops_per_second(const Environment& environment,
                                             std::string_view device, std::string_view dtype);

// Marks a point invalid whose implied rate is above its limit, with both figures in the reason.
void refuse_impossible_rate(PointRecord& point);

}  // namespace rematch
