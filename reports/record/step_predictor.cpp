#include "reports/record/step_predictor.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "policies/predict/pipeline/schedule.h"
#include "policies/predict/pipeline/step_time.h"
#include "policies/trace/accumulation.h"
#include "reports/record/simulated_memory.h"

namespace rematch {

namespace {

void name_frozen(Bytes frozen, HeldBytes& held) {
  held[Holder::kOther] -= frozen;
  held[Holder::kFrozenParameters] = frozen;
}

// Moves the bytes of frozen weights from Holder::kOther to Holder::kFrozenParameters.
void name_frozen(Bytes frozen, MemoryRecord& memory) {
  if (frozen.count == 0) return;
  name_frozen(frozen, memory.holders_at_peak);
  for (auto& [phase, held] : memory.holders_by_phase) name_frozen(frozen, held);
}

// Adds the counts of one more stage, and takes its memory if its peak is higher.
void add_stage(const PredictedStep& stage, PredictedStep& whole) {
  for (std::size_t phase = 0; phase < kNumPhases; ++phase) {
    for (const auto& [name, executed] : stage.counts.by_op[phase]) {
      whole.counts.by_op[phase][name] += executed;
    }
    for (const auto& [op_class, executed] : stage.counts.by_class[phase]) {
      whole.counts.by_class[phase][op_class] += executed;
    }
    for (const auto& [kind, issued] : stage.traffic[phase]) {
      whole.traffic[phase][kind].count += issued.count;
      whole.traffic[phase][kind].sent += issued.sent;
    }
  }
  whole.has_regions |= stage.has_regions;
  whole.recomputed_flops += stage.recomputed_flops;
  if (stage.memory.peak_allocated > whole.memory.peak_allocated) whole.memory = stage.memory;
  if (whole.range && stage.range) {
    whole.range->communication = std::max(whole.range->communication, stage.range->communication);
  }
}

std::vector<const StageHolds*> pointers_to(const std::vector<StageHolds>& stages) {
  std::vector<const StageHolds*> pointers;
  for (const StageHolds& stage : stages) pointers.push_back(&stage);
  return pointers;
}

}  // namespace

std::vector<const Trace*> traces_of_stages(const TracedModel& model) {
  std::vector<const Trace*> traces = {&model.trace};
  for (const TracedModel& stage : model.later_stages) traces.push_back(&stage.trace);
  return traces;
}

StepPredictor::StepPredictor(const TracedModel& model, PredictorSettings settings)
    : model_(model),
      settings_(settings),
      sharded_(shard_step(model.trace, settings.world)),
      simulator_(sharded_.trace, settings.optimizer) {
  simulator_.use_gathered(sharded_.gathered);
  if (settings.profile != nullptr) simulator_.use_profile(*settings.profile);
  if (model.rounded) {
    rounded_.emplace(model.rounded->trace, settings.optimizer, model.rounded->round);
  }
  for (std::size_t later = 0; later < model.later_stages.size(); ++later) {
    PredictorSettings of_stage = settings;
    of_stage.later_profiles.clear();
    if (settings.profile != nullptr) of_stage.profile = settings.later_profiles.at(later);
    later_stages_.push_back(std::make_unique<StepPredictor>(model.later_stages[later], of_stage));
  }
}

PredictedStep StepPredictor::predict(const Plan& plan, Schedule schedule) {
  if (later_stages_.empty()) return predict_own(plan, schedule);
  const std::vector<Plan> plans = plans_of_shapes(plan);
  if (plans.size() != later_stages_.size() + 1) {
    throw std::invalid_argument("the plan has " + std::to_string(plans.size()) +
                                " stages, but the model has " +
                                std::to_string(later_stages_.size() + 1));
  }
  const std::vector<PredictedStep> steps = predict_stages(plans, schedule);
  PredictedStep whole = steps.front();
  whole.schedule_name = schedule_name(pipeline_shape(model_.trace.dimensions));
  whole.policy = plan.policy;
  whole.plan_sha256 = plan_sha256(plan);
  whole.stages.clear();
  for (std::size_t stage = 0; stage < steps.size(); ++stage) {
    const PredictedStep& step = steps[stage];
    whole.stages.push_back(step.stages.front());
    whole.stages.back().memory = step.memory;
    if (stage == 0) continue;
    add_stage(step, whole);
  }
  if (settings_.profile != nullptr) add_time(whole);
  return whole;
}

std::vector<PredictedStep> StepPredictor::predict_stages(const std::vector<Plan>& plans,
                                                         Schedule schedule) {
  std::vector<StepPredictor*> stages = {this};
  for (const auto& later : later_stages_) stages.push_back(later.get());
  std::vector<PredictedStep> steps(stages.size());
  const PipelineShape shape = pipeline_shape(model_.trace.dimensions);
  for (std::int64_t rank = 0; rank < shape.num_ranks; ++rank) {
    const std::vector<PassMoment> moments = pass_moments(shape, rank);
    const std::vector<std::int64_t> of_rank = shape.stages_of(rank);
    std::vector<StageHolds> exact;
    std::vector<StageHolds> rounded;
    for (const std::int64_t stage : of_rank) {
      const auto index = static_cast<std::size_t>(stage);
      StepPredictor& each = *stages.at(index);
      exact.push_back(each.simulator_.holds(plans[index], schedule));
      if (each.rounded_) rounded.push_back(each.rounded_->holds(plans[index], schedule));
    }
    for (std::size_t position = 0; position < of_rank.size(); ++position) {
      const auto index = static_cast<std::size_t>(of_rank[position]);
      const Beside beside{held_by_others(moments, pointers_to(exact), position),
                          held_by_others(moments, pointers_to(rounded), position)};
      steps[index] = stages[index]->predict_own(plans[index], schedule, &beside);
    }
  }
  return steps;
}

// Computes the time of the whole pipeline. Communication between stages belongs to the bubble.
void StepPredictor::add_time(PredictedStep& whole) const {
  std::vector<StageTime> times;
  for (std::size_t stage = 0; stage < whole.stages.size(); ++stage) {
    const Profile& profile =
        stage == 0 ? *settings_.profile : *settings_.later_profiles.at(stage - 1);
    times.push_back({*whole.stages[stage].forward, *whole.stages[stage].backward, profile.optimizer,
                     whole.stages[stage].weights.value_or(Profile::Duration{})});
  }
  const PipelineTime time =
      pipeline_time(pipeline_shape(model_.trace.dimensions), times, settings_.passing);
  whole.bubble_ratio = time.bubble_ratio;
  const Profile::Duration communication = whole.range->communication;
  whole.range = StepRange{time.step - communication, communication};
}

PredictedStep StepPredictor::predict_own(const Plan& plan, Schedule schedule,
                                         const Beside* beside) {
  StepDetails details;
  const StepPrediction step =
      beside == nullptr ? simulator_.simulate(plan, schedule, &details)
                        : simulator_.simulate_beside(beside->exact, plan, schedule, &details);
  PredictedStep predicted;
  predicted.policy = plan.policy;
  predicted.schedule = schedule;
  predicted.has_regions = !plan.regions.empty();
  predicted.plan_sha256 = plan_sha256(plan);
  predicted.counts = counts(details.recomputed);
  predicted.traffic = predict_traffic(model_.trace, details.recomputed);
  for (const OpId op : details.recomputed) predicted.recomputed_flops += model_.trace.ops[op].flops;
  predicted.recomputed_flops *= micro_batches(model_.trace);
  if (step.time) predicted.range = step_range(*step.time);
  if (rounded_) {
    StepDetails rounded;
    const StepPrediction allocated =
        beside == nullptr ? rounded_->simulate(plan, schedule, &rounded)
                          : rounded_->simulate_beside(beside->rounded, plan, schedule, &rounded);
    predicted.memory = memory_of(allocated, rounded.boundaries, model_.rounded->trace);
  } else {
    predicted.memory = memory_of(step, details.boundaries, sharded_.trace);
  }
  name_frozen(model_.frozen, predicted.memory);
  if (std::any_of(plan.types.begin(), plan.types.end(), moves_anything)) {
    predicted.memory.host = HostRecord{step.host};
  }
  predicted.memory.peak_requested = step.peak_bytes();
  predicted.memory.baseline_requested = step.before;
  if (model_.trace.stage) predicted.stages.push_back(own_stage(step));
  return predicted;
}

// The memory is that of the step, and is added later.
PredictedStage StepPredictor::own_stage(const StepPrediction& step) const {
  const Trace& trace = model_.trace;
  const PipelineShape shape = pipeline_shape(trace.dimensions);
  PredictedStage stage;
  stage.rank = trace.stage->index % shape.num_ranks;
  stage.in_flight = most_in_flight(shape, trace.stage->index);
  if (settings_.profile == nullptr) return stage;
  const StageTime time = stage_time(*settings_.profile, step.time->recompute, micro_batches(trace),
                                    weights_time(trace, *settings_.profile));
  stage.forward = time.forward;
  stage.backward = time.backward;
  if (shape.splits_backward) stage.weights = time.weights;
  return stage;
}

CountsRecord StepPredictor::counts(const std::vector<OpId>& recomputed) const {
  PredictedCounts counts = predict_counts(model_.trace, recomputed);
  constexpr auto kOptimizer = static_cast<std::size_t>(Phase::kOptimizer);
  counts.by_op[kOptimizer] = model_.optimizer_ops;
  for (const auto& [name, executed] : model_.optimizer_ops) {
    counts.by_class[kOptimizer][std::string(to_string(op_class_of(name)))] += executed;
  }
  return counts_of(counts);
}

}  // namespace rematch
