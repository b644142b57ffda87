// Peak and recompute of a whole step under any plan, from a trace: what points of a front and
// baselines are compared by.
#pragma once

#include <chrono>
#include <string>

#include "policies/plan/plan.h"
#include "policies/search/stretches.h"
#include "policies/trace/trace.h"

namespace rematch {

struct PlanFigures {
  Bytes peak;  // parameters included, the optimizer's state and forward's temporaries not
  std::string peak_place;   // the outermost scope whose backward it is in
  Bytes saved_at_peak;      // of it, activations that earlier layers hold
  Bytes gradients_at_peak;  // of it, born in backward by then
  std::chrono::nanoseconds recompute{};
  std::int64_t num_recomputed = 0;  // ops
};

// Throws std::invalid_argument if the plan was made for another model.
PlanFigures judge_plan(const Trace& trace, const StretchMap& map, const OpTimes& times,
                       const Plan& plan, Schedule schedule);

}  // namespace rematch
