#include "reports/gate/prediction_check.h"

#include <map>

#include "policies/trace/by_phase.h"
#include "policies/trace/collective.h"
#include "policies/trace/op_class.h"
#include "reports/gate/check_record.h"

namespace rematch {
namespace {

std::int64_t executed(const std::map<OpClass, std::int64_t>& counts, OpClass op_class) {
  const auto found = counts.find(op_class);
  return found == counts.end() ? 0 : found->second;
}

// "executed 9 matmul in recompute, and the plan says 8"; empty: none.
std::string first_other(const ClassCounts& measured, const ClassCounts& predicted) {
  for (const Phase phase : kPhases) {
    const auto index = static_cast<std::size_t>(phase);
    for (int number = 0; number < kNumOpClasses; ++number) {
      const auto op_class = static_cast<OpClass>(number);
      const std::int64_t own = executed(measured.at(index), op_class);
      const std::int64_t wanted = executed(predicted.at(index), op_class);
      if (own == wanted) continue;
      return "executed " + std::to_string(own) + " " + std::string(to_string(op_class)) + " in " +
             std::string(to_string(phase)) + ", and the plan says " + std::to_string(wanted);
    }
  }
  return "";
}

// The same of collectives by kind.
std::string first_other_collective(const RanksRecord::Counts& measured,
                                   const RanksRecord::Counts& predicted) {
  for (const Phase phase : kPhases) {
    const auto index = static_cast<std::size_t>(phase);
    for (std::size_t number = 0; number < kNumCollectiveKinds; ++number) {
      const std::string kind(to_string(static_cast<CollectiveKind>(number)));
      const auto in_phase = [&](const RanksRecord::Counts& counts) {
        const auto found = counts.at(index).find(kind);
        return found == counts.at(index).end() ? 0 : found->second;
      };
      if (in_phase(measured) == in_phase(predicted)) continue;
      return "issued " + std::to_string(in_phase(measured)) + " " + kind + " in " +
             std::string(to_string(phase)) + ", and the plan says " +
             std::to_string(in_phase(predicted));
    }
  }
  return "";
}

}  // namespace

std::optional<CheckRecord> check_prediction(const PointRecord& point) {
  if (point.status != PointStatus::kOk) return std::nullopt;
  std::string problem;
  if (point.counts && point.predicted_counts) {
    problem = first_other(point.counts->by_class, *point.predicted_counts);
  }
  if (problem.empty() && point.ranks && point.ranks->predicted_collectives) {
    problem = first_other_collective(point.ranks->collectives, *point.ranks->predicted_collectives);
  }
  if (problem.empty() && point.effect && point.effect->counts_equal_prediction == false) {
    problem = "executed other ops than predicted: " + point.effect->detail;
  }
  if (problem.empty()) return std::nullopt;
  return decided("predicted_counts", GateVerdict::kFail, problem);
}

}  // namespace rematch
