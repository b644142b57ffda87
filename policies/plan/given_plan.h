// A plan that the user gives to a command, and the schedule that comes with it.
#pragma once

#include <optional>

#include "policies/plan/plan.h"

namespace rematch {

struct GivenPlan {
  Plan plan;
  std::optional<Schedule> schedule;  // the schedule that the plan was searched for, if any
};

}  // namespace rematch
