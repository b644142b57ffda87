#include "policies/search/mix_problem.h"

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

}  // namespace rematch
