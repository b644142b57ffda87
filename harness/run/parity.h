// Compares the steps of one point with the reference's steps, bit by bit. Pure.
#pragma once

#include "reports/record/point.h"

namespace rematch {

// Compares the steps that both points ran, from step 0 on. Does not change the point's record of
// missing gradients. `reference` may have ended with an error.
ParityRecord compare_steps(const PointRecord& point, const PointRecord& reference);

// Drops most hashes of single gradients, because they would make up most of a report. Keeps the
// hashes of the first two steps, so that a comparison of two reports can name the tensor that
// differs. If the point's gradients equal the reference's, drops all of the point's hashes.
void thin_gradient_hashes(PointRecord& point);

}  // namespace rematch
