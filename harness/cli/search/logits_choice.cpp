#include "harness/cli/search/logits_choice.h"

#include "policies/base/bytes.h"
#include "policies/base/format.h"
#include "policies/search/simple/simple_point.h"

namespace rematch {

std::optional<SearchFlags> with_kept_logits(const SearchFlags& flags) {
  const bool prices_by_ceilings = flags.trace_file.empty() && !flags.ceilings_file.empty();
  if (!prices_by_ceilings || !flags.target.empty()) return std::nullopt;
  const std::optional<ModelFlags> model = flags.model.with_kept_logits();
  if (!model) return std::nullopt;
  SearchFlags kept = flags;
  kept.model = *model;
  return kept;
}

namespace {

// The answer of a search, or the fastest point that fits if the search asked no question. Null if
// no plan fits.
const FrontPoint* best_of(const FrontRecord& record) {
  if (record.answer) return &*record.answer;
  const std::optional<Bytes> limit = limit_of(record);
  const FrontPoint* best = nullptr;
  for (const FrontPoint& point : record.front.points) {
    if (limit && point.figures.peak > *limit) continue;
    if (best == nullptr || point.step_time < best->step_time) best = &point;
  }
  return best;
}

std::string figures_of(const FrontPoint& point) {
  return format_bytes(point.figures.peak) + " and " + format_duration(point.step_time) + " a step";
}

}  // namespace

bool is_better_with_kept_logits(const FrontRecord& kept, const FrontRecord& recomputed) {
  const FrontPoint* const with = best_of(kept);
  const FrontPoint* const without = best_of(recomputed);
  return with != nullptr && (without == nullptr || with->step_time < without->step_time);
}

std::string words_of_logits(const FrontRecord& kept, const FrontRecord& recomputed) {
  const FrontPoint* const with = best_of(kept);
  const FrontPoint* const without = best_of(recomputed);
  const std::string keeping = "keeping the logits of the loss (--kept-logits 1)";
  if (with == nullptr) return keeping + " fits no plan; backward computes them again";
  const bool is_chosen = is_better_with_kept_logits(kept, recomputed);
  const std::string text =
      keeping + (is_chosen ? " was chosen: " : " was not chosen: ") + figures_of(*with);
  if (without == nullptr) return text;
  return text + "; computing them again: " + figures_of(*without);
}

}  // namespace rematch
