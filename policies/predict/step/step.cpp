#include "policies/predict/step/step.h"

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <utility>

#include "policies/predict/step/micro_batch_run.h"
#include "policies/predict/step/step_facts.h"
#include "policies/predict/step/step_range.h"

namespace rematch {

StepSimulator::StepSimulator(const Trace& trace, OptimizerKind optimizer, std::int64_t round)
    : facts_(std::make_unique<Facts>(trace, optimizer, round)) {}
StepSimulator::~StepSimulator() = default;

void StepSimulator::use_profile(const Profile& profile) {
  if (const auto problem = profile_problem(profile, facts_->trace)) {
    throw std::invalid_argument(*problem);
  }
  facts_->profile = profile;
  facts_->communication = communication_time(facts_->trace, profile);
}

void StepSimulator::use_link(const HostLink& link) { facts_->link = link; }

void StepSimulator::use_gathered(IdTable<OpId, Bytes> gathered) {
  if (!gathered.empty() && gathered.size() != facts_->trace.ops.size()) {
    throw std::invalid_argument("there are " + std::to_string(gathered.size()) +
                                " gathered sizes for " + std::to_string(facts_->trace.ops.size()) +
                                " ops");
  }
  facts_->gathered = std::move(gathered);
}

StepPrediction StepSimulator::simulate(const Plan& plan, Schedule schedule, StepDetails* details) {
  return simulate_step(place(plan), schedule, details);
}

StepPrediction StepSimulator::simulate(const std::vector<LocatedRegion>& regions,
                                       Schedule schedule) {
  return simulate_step(regions, schedule, nullptr);
}

StepPrediction StepSimulator::simulate_beside(const HeldByOthers& others, const Plan& plan,
                                              Schedule schedule, StepDetails* details) {
  return simulate_stage(place(plan), schedule, others, details);
}

StepPrediction StepSimulator::simulate_step(const std::vector<LocatedRegion>& regions,
                                            Schedule schedule, StepDetails* details) {
  if (!facts_->scheduled) return MicroBatchRun(*facts_, regions, schedule, details).run();
  const ScheduledStage& stage = *facts_->scheduled;
  const StageHolds own = holds(regions, schedule);
  std::vector<const StageHolds*> known(stage.num_stages, nullptr);
  known[stage.position] = &own;
  return simulate_stage(regions, schedule, held_by_others(stage.moments, known, stage.position),
                        details);
}

namespace {

// Adds the boundaries and the peaks of other passes to a step. Of equal peaks the other ones count.
void add_earlier(const StepPrediction& earlier, StepPrediction& step) {
  if (earlier.peak_bytes() >= step.peak_bytes()) step.peak = earlier.peak;
  for (std::size_t phase = 0; phase < kNumPhases; ++phase) {
    step.peak_by_phase[phase] = std::max(step.peak_by_phase[phase], earlier.peak_by_phase[phase]);
  }
}

}  // namespace

StepPrediction StepSimulator::simulate_stage(const std::vector<LocatedRegion>& regions,
                                             Schedule schedule, const HeldByOthers& others,
                                             StepDetails* details) {
  const auto run = [&](const HeldDuring& during, const HeldDuring& backward, bool is_later,
                       bool is_alone, StepDetails* of_run) {
    MicroBatch batch{is_later ? during.later : during.first,
                     is_later ? backward.later : backward.first, others.optimizer};
    batch.is_first = !is_later && !is_alone;
    batch.is_last = is_later || is_alone;
    return MicroBatchRun(*facts_, regions, schedule, of_run, batch).run();
  };
  // A step of one micro-batch has no later one.
  const bool is_alone = facts_->first_backward.empty();
  StepPrediction step = run(others.forward, others.backward, false, is_alone, details);
  if (!is_alone) {
    const StepPrediction first = step;
    StepDetails later;
    step = run(others.forward, others.backward, true, false, details == nullptr ? nullptr : &later);
    if (details != nullptr) {
      details->boundaries.insert(details->boundaries.end(), later.boundaries.begin(),
                                 later.boundaries.end());
    }
    add_earlier(first, step);
    if (!others.forward.later) step.after_forward = first.after_forward;
  }
  if (facts_->split) add_weight_passes(others, details, step);
  return step;
}

// Adds the weight passes, which come before the optimizer.
//
// Each matmul finds the operands of all matmuls that have not run. Its result is freed once it has
// been added to a gradient, or becomes the gradient itself in the first micro-batch.
void StepSimulator::add_weight_passes(const HeldByOthers& others, StepDetails* details,
                                      StepPrediction& step) const {
  const Trace& trace = facts_->trace;
  const SplitBackward& split = *facts_->split;
  std::vector<StepBoundary> boundaries;
  for (const bool is_first : {true, false}) {
    const std::optional<HolderBytes>& held = is_first ? others.weights.first : others.weights.later;
    if (!held) continue;
    HolderBytes standing = *held;
    standing[Holder::kParameters] += trace.parameter_bytes;
    standing[Holder::kOptimizer] += facts_->optimizer_bytes.state;
    standing[Holder::kOther] += trace.constant_bytes - trace.stage->held_bytes;
    standing[Holder::kGradients] += trace.gradient_bytes;
    Bytes stored;
    for (std::size_t next = 0; next < split.waiting.size(); ++next) {
      const WeightGradient& weight = split.waiting[next];
      HolderBytes now = standing;
      now[Holder::kSavedActivations] += split.for_weights[next];
      now[Holder::kGradients] += stored;
      now[Holder::kOther] += weight.result;
      if (weight.is_copied) now[Holder::kOther] += weight.gradient;
      boundaries.push_back(
          {Phase::kBackward, facts_->top_scope(trace.ops[weight.forward].scope), now});
      if (is_first) stored += weight.gradient;
    }
  }
  for (const StepBoundary& boundary : boundaries) {
    Bytes& of_phase = step.peak_by_phase[static_cast<std::size_t>(boundary.phase)];
    of_phase = std::max(of_phase, boundary.holders.total());
    if (boundary.holders.total() > step.peak_bytes()) step.peak = boundary;
  }
  if (details == nullptr) return;
  const bool has_optimizer =
      !details->boundaries.empty() && details->boundaries.back().phase == Phase::kOptimizer;
  details->boundaries.insert(details->boundaries.end() - (has_optimizer ? 1 : 0),
                             boundaries.begin(), boundaries.end());
}

StageHolds StepSimulator::holds(const Plan& plan, Schedule schedule) {
  return holds(place(plan), schedule);
}

StageHolds StepSimulator::holds(const std::vector<LocatedRegion>& regions, Schedule schedule) {
  const Trace& trace = facts_->trace;
  StageHolds holds;
  holds.standing[Holder::kParameters] = trace.parameter_bytes;
  holds.standing[Holder::kOptimizer] = facts_->optimizer_bytes.state;
  holds.standing[Holder::kOther] = trace.constant_bytes - trace.stage->held_bytes;
  holds.gradients = trace.gradient_bytes;
  holds.in_flight = MicroBatchRun(*facts_, regions, schedule, nullptr).held_after_forward() +
                    trace.stage->held_bytes;
  if (!facts_->split) return holds;
  holds.weight_gradients = facts_->split->weight_gradients;
  holds.for_weights = facts_->split->for_weights.front();
  return holds;
}

std::vector<LocatedRegion> StepSimulator::place(const Plan& plan) const {
  std::vector<LocatedRegion> placed;
  for (const OpRange range : facts_->index.ranges(plan)) {
    placed.push_back({range, &plan.types.at(plan.regions[placed.size()].type)});
  }
  return placed;
}

}  // namespace rematch
