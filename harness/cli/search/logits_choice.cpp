#include "harness/cli/search/logits_choice.h"

#include <algorithm>

#include "models/preset/kept_logits.h"

namespace rematch {
namespace {

bool keeps_logits(const FrontPoint& point) {
  return point.plan.dimensions.contains(std::string(kKeptLogitsName));
}

}  // namespace

std::optional<SearchFlags> with_kept_logits(const SearchFlags& flags) {
  const bool prices_by_ceilings = flags.trace_file.empty() && !flags.ceilings_file.empty();
  if (!prices_by_ceilings || !flags.target.empty()) return std::nullopt;
  const std::optional<ModelFlags> model = flags.model.with_kept_logits();
  if (!model) return std::nullopt;
  SearchFlags kept = flags;
  kept.model = *model;
  return kept;
}

bool has_choice(const FrontRecord& kept, const FrontRecord& recomputed) {
  const FrontPoint& with = kept.front.nothing_recomputed;
  const FrontPoint& without = recomputed.front.nothing_recomputed;
  return with.step_time != without.step_time || with.figures.peak != without.figures.peak;
}

std::string words_of_logits(const FrontRecord& record) {
  const std::vector<FrontPoint>& points = record.front.points;
  const auto num_keeping = std::count_if(points.begin(), points.end(), keeps_logits);
  std::string text = std::to_string(num_keeping) + " of " + std::to_string(points.size()) +
                     " points keep the logits of the loss (--kept-logits 1)";
  if (record.answer) {
    text += keeps_logits(*record.answer) ? "; the answer keeps them"
                                         : "; the answer computes them again";
  }
  return text;
}

}  // namespace rematch
