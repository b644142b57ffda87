// What one step of a plan executes again, and what it reads and writes for that.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>

#include "policies/base/bytes.h"
#include "policies/plan/plan.h"
#include "policies/trace/collective.h"
#include "policies/trace/phase.h"
#include "policies/trace/trace.h"

namespace rematch {

// How often a plan executes each op in one training step: what measured counts must equal.

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

// The collectives that one rank issues in a step under a plan: how many, and what it sends in them.
// No times: see step_range.h.

struct Issued {
  std::int64_t count = 0;
  Bytes sent;  // see Note [Bytes of a collective]
  bool operator==(const Issued&) const = default;
};

// By phase and kind; sums of gradients are the optimizer's. A kind that is not issued is absent.
using Traffic = std::array<std::map<CollectiveKind, Issued>, kNumPhases>;

// `trace` is a rank's. Throws std::invalid_argument if the plan was made for another model.
Traffic predict_traffic(const Trace& trace, const Plan& plan, Schedule schedule);

}  // namespace rematch
