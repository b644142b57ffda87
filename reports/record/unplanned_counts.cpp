#include "reports/record/unplanned_counts.h"

#include "policies/base/text.h"
#include "policies/trace/by_phase.h"
#include "policies/trace/collective.h"
#include "policies/trace/op_class.h"
#include "reports/record/amount_of.h"

namespace rematch {
namespace {

template <class Names, class Counts>
std::string first_unplanned(const char* verb, const Names& names, const Counts& measured,
                            const Counts& predicted) {
  for (const Phase phase : kPhases) {
    for (const auto& each : names) {
      const typename Counts::value_type::key_type name(each);
      const std::int64_t own = amount_of(measured, phase, name);
      const std::int64_t wanted = amount_of(predicted, phase, name);
      if (own == wanted) continue;
      return std::string(verb) + " " + std::to_string(own) + " " + name_text(name) + " in " +
             std::string(to_string(phase)) + "; the plan predicts " + std::to_string(wanted);
    }
  }
  return "";
}

}  // namespace

std::optional<std::string> unplanned_counts(const PointRecord& point) {
  std::optional<std::string> problem;
  const auto is_open = [&problem] { return !problem || problem->empty(); };
  if (point.counts && point.predicted_counts) {
    problem =
        first_unplanned("executed", kAll<OpClass>, point.counts->by_class, *point.predicted_counts);
  }
  if (is_open() && point.ranks && point.ranks->predicted_collectives) {
    problem = first_unplanned("issued", all_words<CollectiveKind>(), point.ranks->collectives,
                              *point.ranks->predicted_collectives);
  }
  // For single ops, the record stores whether counts equal the prediction, but not the prediction.
  if (is_open() && point.effect && point.effect->counts_equal_prediction) {
    problem = *point.effect->counts_equal_prediction
                  ? ""
                  : "executed ops differ from the prediction: " + point.effect->detail;
  }
  return problem;
}

}  // namespace rematch
