// Tests PyTorch's planners on a small Llama, with several budgets. For each of their plans, the
// search must find a plan that is at least as good.
#include <variant>

#include "policies/base/rejected.h"
#include "policies/planners/memory_budget.h"
#include "policies/planners/min_cut.h"
#include "policies/planners/planners.h"
#include "policies/planners/sac_plan.h"
#include "policies/predict/step/held.h"
#include "policies/search/front/front_search.h"
#include "tests/support/catch.h"
#include "tests/support/made_up_profile.h"
#include "tests/support/toy_trace.h"

namespace rematch {
namespace {

Trace small_llama() { return testing::toy_llama({.layers = 4, .tokens = 64}); }

std::int64_t num_saves(const Plan& plan) {
  std::int64_t count = 0;
  for (const PlannedRegion& region : plan.regions) {
    for (const PlannedOp& op : plan.types[static_cast<std::size_t>(region.type)].ops) {
      count += op.treatment == Treatment::kSave ? 1 : 0;
    }
  }
  return count;
}

// Capacities from source 0 to nodes 1 and 2: 5 and 4. From 1 to 2: 1. From 1 and 2 to sink 3: 3 and
// 2. The edges to the sink are the minimum cut.
TEST_CASE("a minimum cut has the least total capacity") {
  MinCut cut(4);
  cut.add_edge(0, 1, 5);
  cut.add_edge(0, 2, 4);
  cut.add_edge(1, 2, 1);
  cut.add_edge(1, 3, 3);
  cut.add_edge(2, 3, 2);
  CHECK(cut.source_side(0, 3) == std::vector<bool>{true, true, true, false});
  MinCut row(3);
  row.add_edge(0, 1, 2);
  row.add_edge(1, 2, 2);
  // There are two minimum cuts. The result is the cut closest to the source.
  CHECK(row.source_side(0, 2) == std::vector<bool>{true, false, false});
}

TEST_CASE("with memory budget 0 everything is recomputed, and larger budgets save more") {
  const Trace trace = small_llama();
  const Profile profile = testing::made_up_profile(trace, 1);
  for (const KnapsackSolver solver : {KnapsackSolver::kDp, KnapsackSolver::kIlp}) {
    Bytes held;
    for (const double budget : {0.0, 0.1, 0.3, 0.6, 1.0}) {
      CAPTURE(budget);
      const Plan plan = std::get<Plan>(plan_for_memory_budget(trace, profile, budget, solver));
      CHECK(plan.regions.size() == 4);
      const Bytes now = held_after_forward(trace, plan).total();
      CHECK(now >= held);
      held = now;
      if (budget == 0) CHECK(num_saves(plan) == 0);
    }
    const Plan all = std::get<Plan>(plan_for_memory_budget(trace, profile, 1, solver));
    CHECK(num_saves(all) > 4 * 4);
  }
}

TEST_CASE("planners reject budgets outside 0 to 1") {
  const Trace trace = small_llama();
  const Profile profile = testing::made_up_profile(trace, 1);
  for (const double budget : {-0.1, 1.1, std::nan("")}) {
    const auto dp = plan_for_memory_budget(trace, profile, budget, KnapsackSolver::kDp);
    CHECK(std::holds_alternative<Rejected>(dp));
    CHECK(std::holds_alternative<Rejected>(plan_by_sac(trace, profile, budget)));
  }
  CHECK(std::holds_alternative<Rejected>(plan_by_sac(trace, profile, 0.01)));
}

TEST_CASE("baselines are named planners and policies, and other names are rejected") {
  const Trace trace = small_llama();
  const Profile profile = testing::made_up_profile(trace, 1);
  std::vector<RefusedPolicy> refused;
  const auto plans_of = [&](const char* list) {
    return resolve_baselines(list, trace, profile, refused);
  };
  const auto plans = plans_of("pytorch_dp(0.5), skip_list([0,2]),sac_ilp(0.9),pytorch_ilp(1)");
  REQUIRE(std::holds_alternative<std::vector<Plan>>(plans));
  std::vector<std::string> names;
  for (const Plan& plan : std::get<std::vector<Plan>>(plans)) names.push_back(plan.policy);
  CHECK(names == std::vector<std::string>{"pytorch_dp(0.5)", "skip_list([0,2])", "sac_ilp(0.9)",
                                          "pytorch_ilp(1)"});
  for (const char* wrong : {"pytorch_dp", "pytorch_dp()", "pytorch_dp(much)", "pytorch_dp(2)",
                            "pytorch_dpx(0.5)", "full,nonsense", ""}) {
    CAPTURE(wrong);
    const auto rejected = plans_of(wrong);
    REQUIRE(std::holds_alternative<Rejected>(rejected));
    CHECK_FALSE(std::get<Rejected>(rejected).message.empty());
  }
  CHECK(refused.empty());
  CHECK(std::get<Rejected>(plans_of("pytorch_dp(much)")).message ==
        "pytorch_dp needs a budget from 0 to 1: write pytorch_dp(0.5), not 'pytorch_dp(much)'");
  CHECK(planner_baselines(trace, profile).size() >= 3);

  // This model has no experts, and no policy has the effect of torchtune(ac_mode=M).
  const auto rest = plans_of("full,recompute_modules([moe]),torchtune(ac_mode=M),save_mm");
  REQUIRE(std::holds_alternative<std::vector<Plan>>(rest));
  CHECK(std::get<std::vector<Plan>>(rest).size() == 2);
  REQUIRE(refused.size() == 2);
  CHECK(refused[0].name == "recompute_modules([moe])");
  CHECK(refused[1].name == "torchtune(ac_mode=M)");
}

TEST_CASE("sac_ilp checkpoints blocks only if the budget is below the peak") {
  const Trace trace = small_llama();
  const Profile profile = testing::made_up_profile(trace, 1);
  CHECK(std::get<Plan>(plan_by_sac(trace, profile, 1)).regions.empty());
  bool some = false;
  for (const double budget : {0.95, 0.9, 0.85, 0.8, 0.7}) {
    const auto plan = plan_by_sac(trace, profile, budget);
    if (const auto* found = std::get_if<Plan>(&plan)) some |= !found->regions.empty();
  }
  CHECK(some);
}

TEST_CASE("for each of PyTorch's planners, the search finds a point that is at least as good") {
  const Trace trace = small_llama();
  const Profile profile = testing::made_up_profile(trace, 1);
  std::vector<Plan> plans;
  for (const double budget : {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9}) {
    for (auto& plan : {plan_for_memory_budget(trace, profile, budget, KnapsackSolver::kDp),
                       plan_for_memory_budget(trace, profile, budget, KnapsackSolver::kIlp),
                       plan_by_sac(trace, profile, budget)}) {
      if (const auto* found = std::get_if<Plan>(&plan)) plans.push_back(*found);
    }
  }
  CHECK(plans.size() > 20);
  for (const Schedule schedule : {Schedule::kOnDemand, Schedule::kWholeRegion}) {
    CAPTURE(to_string(schedule));
    SearchSpace space;
    space.schedule = schedule;
    space.resolution_ratio = 0;
    FrontSearch search(trace, profile, space);
    for (const Baseline& baseline : search.front(16, plans).baselines) {
      CAPTURE(baseline.point.plan.policy);
      CHECK(baseline.is_matched);
    }
  }
}

}  // namespace
}  // namespace rematch
