// A plan that the user gives to a command, and the schedule that comes with it.
#pragma once

#include <algorithm>
#include <optional>

#include "policies/plan/plan.h"

namespace rematch {

struct GivenPlan {
  Plan plan;
  std::optional<Schedule> schedule;  // the schedule that the plan was searched for, if any
};

// Returns whether one of `plans` does the same as `plan` under the same name. The elements have a
// member `plan`. A plan file often repeats the plan of a policy, such as the point of a front that
// keeps everything.
template <class Plans>
bool is_among(const Plans& plans, const Plan& plan) {
  return std::any_of(plans.begin(), plans.end(), [&](const auto& other) {
    return other.plan.policy == plan.policy && plan_sha256(other.plan) == plan_sha256(plan);
  });
}

}  // namespace rematch
