// Adds a variant's predictions to the record of its point. Marks the point invalid if executed op
// counts or flop rates contradict them. Pure.
#pragma once

#include <optional>
#include <string_view>

#include "harness/run/variants.h"
#include "reports/record/environment.h"
#include "reports/record/point.h"

namespace rematch {

// Adds the predicted op counts of `num_steps` steps and the flops of recompute. If memory was
// measured, also adds the predicted peak and the dead saves.
void add_prediction(const Variant& variant, int num_steps, PointRecord& point);

// Requires the executed op counts to equal the predicted counts. Otherwise the plan, the engine or
// the prediction is wrong, and a point that had ended ok becomes invalid. Fills `point.effect`,
// which must exist if the point has counts.
void check_counts(const Variant& variant, int num_steps, PointRecord& point);

// Adds the flop rate that follows from the step time, also as a fraction of the GPU's peak rate.
// Marks the point invalid if the rate is impossible on its device. Does nothing if the point has no
// step time. Model flops utilization (MFU) is defined as in PaLM's appendix B (Chowdhery et al.
// 2022, arXiv 2204.02311): flops of forward and backward without recompute, divided by the flops
// that the GPU could do in the step time.
void add_flops(const Variant& variant, const Environment& environment, PointRecord& point);

// Returns an upper limit for the device's matmul flops per second, at its highest clock with every
// unit busy. A measured rate above it is a measurement error. Absent if too little is known about
// the device. `threads` is the number of threads of a CPU run.
std::optional<double> most_flops_per_second(const Environment& environment, std::string_view device,
                                            std::string_view dtype, int threads);

// Returns the dense peak rate from the GPU's data sheet, the denominator of MFU. The float32 rate
// is without TF32, which LibTorch leaves off by default. Absent on a CPU, for an unknown GPU, for
// other dtypes, and for float32 if TF32 was forced.
std::optional<double> sheet_flops_per_second(const Environment& environment,
                                             std::string_view device, std::string_view dtype);

// Marks a point that ended ok as invalid if its flop rate exceeds the limit. The reason contains
// both figures.
void refuse_impossible_rate(PointRecord& point);

}  // namespace rematch
