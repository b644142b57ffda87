// The gate's plain limits: peak bytes, executed ops, slowdown. Pure.
#pragma once

#include "reports/gate/gate.h"

namespace rematch {

CheckRecord check_peak(const PointRecord& point, Bytes limit);
CheckRecord check_expectation(const PointRecord& point, const Expectation& expectation);

// Against the reference's step time: the ratio that the run measured by turns where both are of one
// report, else that of medians. `comparable`: measured in one environment.
CheckRecord check_slowdown(const PointRecord& point, const PointRecord& reference, double limit,
                           bool comparable);

}  // namespace rematch
