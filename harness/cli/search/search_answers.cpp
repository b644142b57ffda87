#include "harness/cli/search/search_answers.h"

#include <utility>
#include <variant>

#include "harness/cli/exit_code.h"
#include "harness/cli/search/trainer_modes.h"
#include "policies/base/rejected.h"
#include "policies/base/text.h"
#include "policies/export/torch_file.h"

namespace rematch {

bool is_for_torch(const SearchFlags& flags) {
  if (flags.target.empty()) return false;
  if (flags.target != "torch") {
    if (system_of_target(flags.target) != nullptr) return false;
    std::vector<std::string_view> known = {"torch"};
    for (const TrainingSystem& system : training_systems()) {
      if (!system.target.empty()) known.push_back(system.target);
    }
    throw UsageError("--for has no trainer " + in_quotes(flags.target) +
                     did_you_mean(flags.target, known));
  }
  if (flags.schedule_option->count() != 0 && flags.schedule != "whole_region") {
    throw UsageError("torch recomputes whole regions; leave out --schedule or --for");
  }
  return true;
}

void keep_to_torch(SearchSpace& space) {
  space.whole_modules = true;
  space.most_in_segment = 1;
}

std::vector<Plan> runnable_by_torch(const Trace& trace, std::vector<Plan> baselines) {
  std::erase_if(baselines, [&](const Plan& plan) {
    return std::holds_alternative<Rejected>(torch_regions(trace, plan, Schedule::kWholeRegion));
  });
  return baselines;
}

}  // namespace rematch
