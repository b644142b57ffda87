#include "harness/cli/search/search_for_torch.h"

#include <variant>

#include "harness/cli/exit_code.h"
#include "policies/export/torch_regions.h"

namespace rematch {

bool is_for_torch(const SearchFlags& flags) {
  if (flags.target.empty()) return false;
  if (flags.target != "torch") {
    throw UsageError(
        "--for takes torch; configurations of trainers hold no searched plan, only their own "
        "modes");
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
