#include "policies/search/front/point_judge.h"

#include <utility>

#include "policies/predict/step/optimizer_bytes.h"
#include "policies/search/words/saves_text.h"
#include "policies/trace/accumulation.h"

namespace rematch {
namespace {

// Makes the profile match the trace of one rank. That trace has the same ops as the profile's
// trace, but different bytes.
Profile profile_of_rank(Profile profile, const Trace& trace, int world) {
  if (world > 1) profile.trace_sha256 = trace_sha256(trace);
  return profile;
}

PlanFigures figures_of(const StepPrediction& step, const Trace& trace) {
  PlanFigures figures;
  figures.peak = step.peak_bytes();
  figures.peak_phase = step.peak.phase;
  if (step.peak.scope) figures.peak_place = trace.scopes[*step.peak.scope].path;
  figures.holders = step.peak.holders;
  figures.after_forward = step.after_forward;
  figures.host = step.host;
  figures.recompute = step.time->recompute;
  figures.communication = step.time->communication;
  figures.num_recomputed = step.recomputed_ops;
  figures.num_recomputed_kernels = step.recomputed_kernels;
  return figures;
}

}  // namespace

PointJudge::PointJudge(const Trace& trace, const Profile& profile, const SearchSpace& space)
    : step_(shard_step(trace, space.world)),
      profile_(profile),
      space_(space),
      simulator_(step_.trace, space.optimizer),
      before_(step_.trace.parameter_bytes + step_.trace.constant_bytes +
              gradients_before(step_.trace) + optimizer_bytes(step_.trace, space.optimizer).state) {
  simulator_.use_profile(profile_of_rank(profile, step_.trace, space.world));
  simulator_.use_gathered(step_.gathered);
  if (space.offload) simulator_.use_link(*space.offload);
}

FrontPoint PointJudge::judge(Plan plan) {
  FrontPoint point;
  const StepPrediction step = simulator_.simulate(plan, space_.schedule);
  point.figures = figures_of(step, step_.trace);
  if (space_.offload) point.copy_time = step.time->copies;
  // a trace that sharding.h derived from the whole model contains no communication
  if (space_.world > 1) point.figures.communication.reset();
  point.step_time = profile_.step_time() + point.figures.recompute +
                    point.copy_time.value_or(std::chrono::nanoseconds{});
  point.step_time_bound = profile_.step_time();
  point.plan = std::move(plan);
  return point;
}

void PointJudge::add_words(FrontPoint& point) const {
  point.layers = layer_runs(point.plan, step_.trace);
  point.saves = saves_text(point.plan, step_.trace);
}

}  // namespace rematch
