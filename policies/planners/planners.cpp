#include "policies/planners/planners.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "policies/base/text.h"
#include "policies/catalogue/catalogue.h"
#include "policies/catalogue/resolve.h"
#include "policies/planners/memory_budget.h"
#include "policies/planners/sac_plan.h"

namespace rematch {
namespace {

using Resolved = std::variant<Plan, Rejected>;

struct Planner {
  std::string_view name;
  Resolved (*plan)(const Trace& trace, const Profile& profile, double budget);
};

constexpr std::array<Planner, 3> kPlanners = {
    Planner{"pytorch_dp",
            [](const Trace& trace, const Profile& profile, double budget) {
              return plan_for_memory_budget(trace, profile, budget, KnapsackSolver::kDp);
            }},
    Planner{"pytorch_ilp",
            [](const Trace& trace, const Profile& profile, double budget) {
              return plan_for_memory_budget(trace, profile, budget, KnapsackSolver::kIlp);
            }},
    Planner{"sac_ilp", plan_by_sac}};

// Returns the plan of a planner. Returns nullopt if `call` does not name a planner.
std::optional<Resolved> resolve_planner(std::string_view call, const Trace& trace,
                                        const Profile& profile) {
  for (const Planner& planner : kPlanners) {
    if (!call.starts_with(planner.name)) continue;
    const std::string_view rest = call.substr(planner.name.size());
    if (!rest.empty() && rest.front() != '(') continue;
    const bool is_call = rest.size() > 2 && rest.back() == ')';
    const std::string_view number = is_call ? trimmed(rest.substr(1, rest.size() - 2)) : rest;
    const auto budget = parse_number<double>(number);
    if (!is_call || !budget) {
      const std::string name(planner.name);
      return Rejected{name + " needs a budget from 0 to 1: write " + name + "(0.5), not " +
                      in_quotes(call)};
    }
    return planner.plan(trace, profile, *budget);
  }
  return std::nullopt;
}

// Resolves one policy. Appends its plan to `plans`, or the policy to `refused` if it cannot be
// applied. Returns Rejected if `call` names no policy.
std::optional<Rejected> add_policy(std::string_view call, const Trace& trace,
                                   std::vector<Plan>& plans, std::vector<RefusedPolicy>& refused) {
  auto parsed = parse_policies(call, refused);
  if (auto* rejected = std::get_if<Rejected>(&parsed)) return std::move(*rejected);
  for (const Policy& policy : std::get<std::vector<Policy>>(parsed)) {
    Resolved plan = resolve(policy, trace, NoEffect::kAllow);
    if (const auto* rejected = std::get_if<Rejected>(&plan)) {
      refused.push_back({policy.name, rejected->message});
    } else {
      plans.push_back(std::get<Plan>(std::move(plan)));
    }
  }
  return std::nullopt;
}

}  // namespace

std::variant<std::vector<Plan>, Rejected> resolve_baselines(std::string_view list,
                                                            const Trace& trace,
                                                            const Profile& profile,
                                                            std::vector<RefusedPolicy>& refused) {
  const auto calls = split_at_commas(list);
  if (!calls) return Rejected{"the brackets of " + in_quotes(list) + " are unbalanced"};
  std::vector<Plan> plans;
  for (std::string_view call : *calls) {
    auto planned = resolve_planner(call, trace, profile);
    if (!planned) {
      if (auto rejected = add_policy(call, trace, plans, refused)) return *std::move(rejected);
      continue;
    }
    if (auto* rejected = std::get_if<Rejected>(&*planned)) return std::move(*rejected);
    plans.push_back(std::get<Plan>(*std::move(planned)));
  }
  return plans;
}

std::vector<Plan> planner_baselines(const Trace& trace, const Profile& profile) {
  constexpr std::array<double, 2> kBudgets = {0.4, 0.8};
  std::vector<Plan> plans;
  for (const Planner& planner : kPlanners) {
    for (double budget : kBudgets) {
      Resolved plan = planner.plan(trace, profile, budget);
      auto* found = std::get_if<Plan>(&plan);
      if (found == nullptr) continue;
      const bool is_known = std::any_of(plans.begin(), plans.end(), [&](const Plan& known) {
        return known.types == found->types && known.regions == found->regions;
      });
      if (!is_known) plans.push_back(std::move(*found));
    }
  }
  return plans;
}

}  // namespace rematch
