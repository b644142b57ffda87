// The schedules that tests of recompute run under.
#pragma once

#include "policies/plan/plan.h"

namespace rematch::testing {

inline constexpr Schedule kSchedules[] = {Schedule::kWholeRegion, Schedule::kOnDemand};

}  // namespace rematch::testing
