#include "policies/search/mix/mix_problem.h"

#include <algorithm>

namespace rematch {

MixProblem mix_problem(const SpanMap& map, const SpanOptions& options) {
  MixProblem problem;
  for (const std::vector<SpanOption>& list : options.lists) {
    problem.lists.emplace_back();
    for (const SpanOption& option : list) problem.lists.back().push_back(option.figures);
  }
  for (const Span& span : map.spans) {
    problem.list_of_layer.push_back(span.kind);
    problem.gradients.push_back(span.born);
  }
  problem.floor = map.most_born;
  return problem;
}
MixProblem relaxed_mix_problem(const SpanMap& map, const SpanOptions& options) {
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
