#include "policies/search/front/plan_judge.h"

#include <utility>

namespace rematch {

PlanJudge::PlanJudge(const Trace& trace, const Profile& profile, OptimizerModel optimizer)
    : trace_(trace), simulator_(trace, optimizer) {
  simulator_.use_profile(profile);
}

void PlanJudge::use_gathered(IdTable<OpId, Bytes> gathered) {
  simulator_.use_gathered(std::move(gathered));
}

PlanFigures PlanJudge::judge(const Plan& plan, Schedule schedule) {
  const StepPrediction step = simulator_.simulate(plan, schedule);
  PlanFigures figures;
  figures.peak = step.peak_bytes();
  figures.peak_phase = step.peak.phase;
  if (step.peak.scope) figures.peak_place = trace_.scopes[*step.peak.scope].path;
  figures.holders = step.peak.holders;
  figures.after_forward = step.after_forward;
  figures.host = step.host;
  figures.recompute = step.time->recompute;
  figures.communication = step.time->communication;
  figures.num_recomputed = step.recomputed_ops;
  figures.num_recomputed_kernels = step.recomputed_kernels;
  return figures;
}

std::string_view largest_holder(const StepHolders& holders) {
  const std::pair<Bytes, std::string_view> all[] = {
      {holders.saved_activations, "saved activations"},
      {holders.recompute_transient, "recomputed activations"},
      {holders.gradients, "gradients of parameters"},
      {holders.parameters, "parameters"},
      {holders.optimizer, "the optimizer's state"},
      {holders.other, "temporaries and constants"}};
  const auto* largest = &all[0];
  for (const auto& holder : all) {
    if (holder.first > largest->first) largest = &holder;
  }
  return largest->second;
}

}  // namespace rematch
