// Predicts how often a plan executes each op in one step, and which collectives a rank issues.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "policies/base/bytes.h"
#include "policies/plan/plan.h"
#include "policies/trace/collective.h"
#include "policies/trace/phase.h"
#include "policies/trace/trace.h"

namespace rematch {

// How often a plan executes each op in one training step, by phase. Includes views. Measured counts
// must equal these numbers. The optimizer's phase is empty, because a trace contains only forward
// and backward.
struct PredictedCounts {
  using Counts = std::map<std::string, std::int64_t>;
  std::array<Counts, kNumPhases> by_op;     // "aten::mm"
  std::array<Counts, kNumPhases> by_class;  // "matmul"

  const Counts& ops(Phase phase) const { return by_op[static_cast<int>(phase)]; }
  const Counts& classes(Phase phase) const { return by_class[static_cast<int>(phase)]; }
};

// `recomputed` lists the ops that a simulated micro-batch recomputes: see StepDetails.
PredictedCounts predict_counts(const Trace& trace, const std::vector<OpId>& recomputed);
// Simulates a step of the plan. Throws std::invalid_argument if the plan was made for another
// model.
PredictedCounts predict_counts(const Trace& trace, const Plan& plan, Schedule schedule);

// The collectives of one kind that a rank issues in one phase: their number, and the bytes sent.

struct Issued {
  std::int64_t count = 0;
  Bytes sent;  // see Note [Bytes of a collective]
  bool operator==(const Issued&) const = default;
};

// Issued collectives by phase and kind. The collectives that sum gradients over ranks belong to the
// optimizer's phase.
using Traffic = std::array<std::map<CollectiveKind, Issued>, kNumPhases>;

// `trace` is the trace of one rank.
Traffic predict_traffic(const Trace& trace, const std::vector<OpId>& recomputed);
// Simulates a step of the plan. Throws std::invalid_argument if the plan was made for another
// model.
Traffic predict_traffic(const Trace& trace, const Plan& plan, Schedule schedule);

}  // namespace rematch
