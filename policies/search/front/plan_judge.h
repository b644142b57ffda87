// Peak and recompute of a whole step under any plan, from a trace: what points of a front and
// baselines are compared by. The figures are the step simulator's, so they are the engine's.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "policies/plan/plan.h"
#include "policies/predict/step/step.h"
#include "policies/trace/phase.h"
#include "policies/trace/profile.h"
#include "policies/trace/trace.h"

namespace rematch {

struct PlanFigures {
  Bytes peak;  // of all that there is: parameters, optimizer, gradients, activations, constants
  Phase peak_phase = Phase::kBackward;
  std::string peak_place;  // the outermost scope whose ops these are; empty: outside scopes
  StepHolders holders;     // at the peak
  Bytes after_forward;
  StepHost host;
  std::chrono::nanoseconds recompute{};
  // Part of the step time, recompute's among it. Nothing: nobody counted it.
  std::optional<std::chrono::nanoseconds> communication;
  std::int64_t num_recomputed = 0;  // ops
  // Kernels that these launch, where the profile has counted them.
  std::optional<std::int64_t> num_recomputed_kernels;
};

class PlanJudge {
 public:
  // The trace must outlive it. Throws std::invalid_argument if the profile is another trace's.
  PlanJudge(const Trace& trace, const Profile& profile, OptimizerModel optimizer);

  // See StepSimulator.
  void use_gathered(IdTable<OpId, Bytes> gathered);

  // Throws std::invalid_argument if the plan was made for another model.
  PlanFigures judge(const Plan& plan, Schedule schedule);

 private:
  const Trace& trace_;
  StepSimulator simulator_;
};

// "saved activations", "parameters": who holds most.
std::string_view largest_holder(const StepHolders& holders);

}  // namespace rematch
