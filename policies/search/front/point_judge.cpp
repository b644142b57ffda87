#include "policies/search/front/point_judge.h"

#include <algorithm>
#include <optional>
#include <string>
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

PointJudge::Stage::Stage(const SearchedStage& stage, const SearchSpace& space)
    : step(shard_step(stage.trace, space.world)),
      profile(stage.profile),
      simulator(step.trace, space.optimizer) {
  simulator.use_profile(profile_of_rank(profile, step.trace, space.world));
  simulator.use_gathered(step.gathered);
  if (space.offload) simulator.use_link(*space.offload);
}

PointJudge::PointJudge(const std::vector<SearchedStage>& stages, const SearchSpace& space)
    : space_(space) {
  for (const SearchedStage& searched : stages) {
    stages_.push_back(std::make_unique<Stage>(searched, space));
    const Trace& trace = stages_.back()->step.trace;
    before_ += trace.parameter_bytes + trace.constant_bytes + gradients_before(trace) +
               optimizer_bytes(trace, space.optimizer).state;
    step_time_ += searched.profile.step_time();
  }
  if (stages_.size() == 1) return;
  const Trace& first = trace(0);
  moments_ = pass_moments(pipeline_shape(first.dimensions), first.stage.value().index);
  // A stage that does not run holds no batch and no activation from the stage before.
  for (std::size_t stage = 1; stage < stages_.size(); ++stage) {
    before_ -= trace(stage).stage.value().held_bytes;
  }
}

// The rank's figures are those of the stage with the highest peak, with the sums of all stages.
FrontPoint PointJudge::judge_stages(const Plan& plan) {
  const std::vector<Plan> plans = plans_of_shapes(plan);
  std::vector<StageHolds> holds;
  for (std::size_t stage = 0; stage < stages_.size(); ++stage) {
    holds.push_back(stages_[stage]->simulator.holds(plans.at(stage), space_.schedule));
  }
  std::vector<const StageHolds*> pointers;
  for (const StageHolds& each : holds) pointers.push_back(&each);
  std::optional<StepPrediction> whole;
  std::size_t highest = 0;
  std::vector<std::chrono::nanoseconds> recompute;
  for (std::size_t stage = 0; stage < stages_.size(); ++stage) {
    const StepPrediction own = stages_[stage]->simulator.simulate_beside(
        held_by_others(moments_, pointers, stage), plans[stage], space_.schedule);
    recompute.push_back(own.time->recompute);
    if (!whole) {
      whole = own;
      continue;
    }
    if (own.peak_bytes() > whole->peak_bytes()) {
      whole->peak = own.peak;
      highest = stage;
    }
    whole->after_forward = std::max(whole->after_forward, own.after_forward);
    whole->recomputed_ops += own.recomputed_ops;
    whole->time->recompute += own.time->recompute;
    whole->time->communication += own.time->communication;
  }
  FrontPoint point;
  point.figures = figures_of(*whole, trace(highest));
  point.figures.num_recomputed_kernels.reset();
  point.figures.recompute_of_stages = std::move(recompute);
  const std::string stage = "stage " + std::to_string(trace(highest).stage.value().index);
  const std::string& place = point.figures.peak_place;
  point.figures.peak_place = place.empty() ? stage : stage + ", " + place;
  return point;
}

namespace {

void raise(const StepBoundary& boundary, std::optional<HolderBytes>& peak) {
  if (!peak || boundary.holders.total() > peak->total()) peak = boundary.holders;
}

}  // namespace

PointJudge::StageFigures PointJudge::figures_of_stage(std::size_t stage, const Plan& plan) {
  StageFigures figures;
  StepSimulator& simulator = stages_.at(stage)->simulator;
  figures.holds = simulator.holds(plan, space_.schedule);
  const HeldDuring nothing{HolderBytes{}, HolderBytes{}};
  StepDetails details;
  simulator.simulate_beside({nothing, nothing, {}, {}}, plan, space_.schedule, &details);
  // The boundaries of the first micro-batch come first, and forward before backward.
  bool is_later = false;
  bool was_forward = true;
  for (const StepBoundary& boundary : details.boundaries) {
    const bool is_forward = boundary.phase == Phase::kForward;
    is_later |= is_forward && !was_forward;
    was_forward = is_forward;
    if (boundary.phase == Phase::kOptimizer) {
      figures.own_peaks.optimizer = boundary.holders;
      continue;
    }
    HeldDuring& during = is_forward ? figures.own_peaks.forward : figures.own_peaks.backward;
    raise(boundary, is_later ? during.later : during.first);
  }
  return figures;
}

Bytes PointJudge::peak_of(const std::vector<const StageFigures*>& stages) const {
  std::vector<const StageHolds*> holds;
  for (const StageFigures* each : stages) holds.push_back(&each->holds);
  Bytes peak;
  const auto raise_by = [&](const std::optional<HolderBytes>& others,
                            const std::optional<HolderBytes>& own) {
    if (others && own) peak = std::max(peak, others->total() + own->total());
  };
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    const HeldByOthers others = held_by_others(moments_, holds, stage);
    const HeldByOthers& own = stages[stage]->own_peaks;
    raise_by(others.forward.first, own.forward.first);
    raise_by(others.forward.later, own.forward.later);
    raise_by(others.backward.first, own.backward.first);
    raise_by(others.backward.later, own.backward.later);
    raise_by(others.optimizer, own.optimizer);
  }
  return peak;
}

FrontPoint PointJudge::judge(Plan plan) {
  FrontPoint point;
  if (stages_.size() > 1) {
    point = judge_stages(plan);
  } else {
    const StepPrediction step = stages_.front()->simulator.simulate(plan, space_.schedule);
    point.figures = figures_of(step, trace(0));
    if (space_.offload) point.copy_time = step.time->copies;
  }
  // a trace that sharding.h derived from the whole model contains no communication
  if (space_.world > 1) point.figures.communication.reset();
  point.step_time =
      step_time_ + point.figures.recompute + point.copy_time.value_or(std::chrono::nanoseconds{});
  point.step_time_bound = step_time_;
  point.plan = std::move(plan);
  return point;
}

void PointJudge::add_words(FrontPoint& point) const {
  if (stages_.size() > 1) return;
  point.layers = layer_runs(point.plan, trace(0));
  point.saves = saves_text(point.plan, trace(0));
}

}  // namespace rematch
