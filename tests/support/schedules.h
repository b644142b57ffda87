// The schedules that recompute tests run under.
#pragma once

#include "policies/plan/plan.h"

namespace rematch::testing {

inline constexpr Schedule kSchedules[] = {Schedule::kWholeRegion, Schedule::kOnDemand};

}  // namespace rematch::testing
