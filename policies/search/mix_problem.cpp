#include "policies/search/mix_problem.h"

#include <algorithm>

namespace rematch {

MixProblem mix_problem(const StretchMap& map, const StretchOptions& options) {
  MixProblem problem;
  for (const std::vector<StretchOption>& list : options.lists) {
    problem.lists.emplace_back();
    for (const StretchOption& option : list) problem.lists.back().push_back(option.figures);
  }
  for (const Stretch& stretch : map.stretches) {
    problem.list_of_layer.push_back(stretch.kind);
    problem.gradients.push_back(stretch.born);
  }
  problem.floor = map.most_born;
  return problem;
}
MixProblem relaxed_mix_problem(const StretchMap& map, const StretchOptions& options) {
  MixProblem problem = mix_problem(map, options);
  for (std::size_t kind = 0; kind < problem.lists.size(); ++kind) {
    const OptionGap& gap = options.gaps[kind];
    for (LayerOption& option : problem.lists[kind]) {
      if (option.num_layers > 1) continue;
      option.time = std::max(option.time - gap.time, std::chrono::nanoseconds{});
      option.transient -= gap.transient;
    }
  }
  return problem;
}

}  // namespace rematch
