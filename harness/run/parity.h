// Holds one point's steps against the reference's, bit by bit. Pure.
#pragma once

#include "reports/record/point.h"

namespace rematch {

// Compares as many steps as both have. What the point's own run said about missing gradients is
// kept. `reference` did not need to end ok: it is compared as far as it got.
ParityRecord compare_steps(const PointRecord& point, const PointRecord& reference);

// Drops most hashes of single gradients, which would be most of a report. Those of the first two
// steps stay, so that a gate between two reports can name the tensor that differs, unless the
// point's gradients have its reference's bits: then the reference has the same hashes.
void thin_gradient_hashes(PointRecord& point);

}  // namespace rematch
