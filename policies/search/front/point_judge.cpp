#include "policies/search/front/point_judge.h"

#include <utility>

#include "policies/predict/step/optimizer_bytes.h"
#include "policies/search/front/saves_text.h"

namespace rematch {
namespace {

// The rank's trace has the ops of the one that was profiled, and other bytes.
Profile profile_of_rank(Profile profile, const Trace& trace, int world) {
  if (world > 1) profile.trace_sha256 = trace_sha256(trace);
  return profile;
}

}  // namespace

PointJudge::PointJudge(const Trace& trace, const Profile& profile, const SearchSpace& space)
    : step_(shard_step(trace, space.world)),
      profile_(profile),
      space_(space),
      judge_(step_.trace, profile_of_rank(profile, step_.trace, space.world), space.optimizer),
      before_(step_.trace.parameter_bytes + step_.trace.constant_bytes +
              optimizer_bytes(step_.trace, space.optimizer).state) {
  judge_.use_gathered(step_.gathered);
}

FrontPoint PointJudge::judge(Plan plan) {
  FrontPoint point;
  point.figures = judge_.judge(plan, space_.schedule);
  if (space_.world > 1) point.figures.communication.reset();  // the trace is of one rank alone
  const StepHost& host = point.figures.host;
  if (space_.offload) {
    point.copy_time = space_.offload->time_of(host.copied_out, host.copied_back);
  }
  point.step_time = profile_.step_time() + point.figures.recompute +
                    point.copy_time.value_or(std::chrono::nanoseconds{});
  point.step_time_bound = profile_.step_time();
  point.plan = std::move(plan);
  return point;
}

FrontPoint PointJudge::in_words(FrontPoint point) const {
  point.layers = layer_runs(point.plan, step_.trace);
  point.saves = saves_text(point.plan, step_.trace);
  return point;
}

}  // namespace rematch
