#include "policies/plan/stage_plans.h"

namespace rematch {

Plan plan_of_stages(const std::vector<Plan>& stages) {
  Plan all = stages.front();
  for (std::size_t stage = 1; stage < stages.size(); ++stage) {
    all.other_shapes.push_back(stages[stage]);
    all.hidden = united(all.hidden, stages[stage].hidden);
    all.watches_writes |= stages[stage].watches_writes;
  }
  return all;
}

Plan plan_of_stage(const Plan& plan, std::size_t stage) { return plans_of_shapes(plan).at(stage); }

}  // namespace rematch
