// Joins the fronts of two forms of one model. The forms differ in something that no region holds,
// such as whether the loss keeps its logits for backward. So each form has a trace, times and a
// search of its own, and the best plans may belong to either.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "policies/base/bytes.h"
#include "policies/search/front/front.h"
#include "policies/search/front/front_json.h"

namespace rematch {

// Questions to a search that has filled a record: see FrontSearch.
struct SearchQuestions {
  std::function<std::optional<FrontPoint>(Bytes budget)> fastest_within;
  std::function<FrontPoint(double slowdown_ratio)> lowest_within_slowdown;
  std::function<std::chrono::nanoseconds(Bytes peak)> step_time_bound;
};

// Returns the questions to `search`, a FrontSearch or PipelineSearch. They keep it alive.
template <class Search>
SearchQuestions questions_to(std::shared_ptr<Search> search) {
  return {[search](Bytes budget) { return search->fastest_within(budget); },
          [search](double ratio) { return search->lowest_within_slowdown(ratio); },
          [search](Bytes peak) { return search->step_time_bound(peak); }};
}

struct FormOfModel {
  FrontRecord record;
  std::string words;  // precede the words of each of its points, if not empty
  SearchQuestions ask;
};

// Returns one record for both forms. Both must have the same limit.
// - The points are those of both fronts that no point of either is better than. The plan of each
//   has the dimensions of its form. A bound of a step time holds for plans of both forms.
// - The answer and the simple plan are the better ones. A largest slowdown counts from the faster
//   step that recomputes nothing.
// - The dimensions and the baselines are those of `usual`.
FrontRecord join_fronts(const FormOfModel& usual, const FormOfModel& other);

}  // namespace rematch
