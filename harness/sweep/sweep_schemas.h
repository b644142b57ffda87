// The versions of a sweep's own formats.
#pragma once

#include "policies/trace/schema.h"

namespace rematch {

inline constexpr Schema kSweepSchema{"sweep"};
inline constexpr Schema kSweepPlanSchema{"sweep_plan"};
inline constexpr Schema kClaimSchema{"claim"};

}  // namespace rematch
