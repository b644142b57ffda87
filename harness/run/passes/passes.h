// The passes over one point in this process, each apart from the others so that none disturbs
// another. They fill a PointRecord; what ends one early stands in its status and reason.
#pragma once

#include "harness/run/children/request.h"
#include "reports/record/point.h"

namespace rematch {

// Parity, counts and memory (on meta counts and memory), parity alone, or time. Never throws for
// what a point may meet: out of memory, a loss that is not finite, a refused op; throws for a
// request that makes no sense. Call before the first tensor: it chooses the allocator.
PointRecord run_passes(const PointRequest& request);

}  // namespace rematch
