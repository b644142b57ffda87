// What was predicted of a variant beside what its point measured, and where the two must agree.
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

// Of a point with a step time: the rate that it implies, refused where no such device has it.
void add_flops(const Variant& variant, const Environment& environment, PointRecord& point);

}  // namespace rematch
