// A plan that the user gives to a command, and the schedule that comes with it.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "policies/base/rejected.h"
#include "policies/plan/plan.h"
#include "policies/trace/trace.h"

namespace rematch {

struct GivenPlan {
  Plan plan;
  std::optional<Schedule> schedule;  // the schedule that the plan was searched for, if any
};

// Returns whether `plans` contains a plan with the same effect and the same policy name as `plan`.
// This often happens, because a plan file may contain the plan of a policy that is also in `plans`.
// Each element of `plans` has a member `plan`.
template <class Plans>
bool is_among(const Plans& plans, const Plan& plan) {
  return std::any_of(plans.begin(), plans.end(), [&](const auto& other) {
    return other.plan.policy == plan.policy && plan_sha256(other.plan) == plan_sha256(plan);
  });
}

// Returns nullopt if the plan was made for the trace with this hash. Otherwise explains why the
// plan cannot be used. `name` is what the user calls the plan, such as "front.json#3".
std::optional<Rejected> wrong_trace(const Plan& plan, const std::string& name, const Trace& trace,
                                    std::string_view trace_sha256);

}  // namespace rematch
