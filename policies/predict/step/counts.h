// How often a plan executes each op in one training step: what measured counts must equal.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>

#include "policies/plan/plan.h"
#include "policies/trace/phase.h"
#include "policies/trace/trace.h"

namespace rematch {

// By phase, views included. The optimizer's phase is empty: a trace holds forward and backward.
struct PredictedCounts {
  using Counts = std::map<std::string, std::int64_t>;
  std::array<Counts, kNumPhases> by_op;     // "aten::mm"
  std::array<Counts, kNumPhases> by_class;  // "matmul"

  const Counts& ops(Phase phase) const { return by_op[static_cast<int>(phase)]; }
  const Counts& classes(Phase phase) const { return by_class[static_cast<int>(phase)]; }
};

// Throws std::invalid_argument if the plan was made for another model.
PredictedCounts predict_counts(const Trace& trace, const Plan& plan, Schedule schedule);

}  // namespace rematch
