// Holds one point's steps against the reference's, bit by bit. Pure.
#pragma once

#include "reports/record/point.h"

namespace rematch {

// Compares as many steps as both have. What the point's own run said about missing gradients is
// kept. `reference` did not need to end ok: it is compared as far as it got.
ParityRecord compare_steps(const PointRecord& point, const PointRecord& reference);

}  // namespace rematch
