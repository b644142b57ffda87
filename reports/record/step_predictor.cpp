#include "reports/record/step_predictor.h"

#include <algorithm>
#include <utility>

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

}  // namespace

StepPredictor::StepPredictor(const TracedModel& model, PredictorSettings settings)
    : model_(model),
      sharded_(shard_step(model.trace, settings.world)),
      simulator_(sharded_.trace, settings.optimizer) {
  simulator_.use_gathered(sharded_.gathered);
  if (settings.profile != nullptr) simulator_.use_profile(*settings.profile);
  if (model.rounded) {
    rounded_.emplace(model.rounded->trace, settings.optimizer, model.rounded->round);
  }
}

PredictedStep StepPredictor::predict(const Plan& plan, Schedule schedule) {
  StepDetails details;
  const StepPrediction step = simulator_.simulate(plan, schedule, &details);
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
    const StepPrediction allocated = rounded_->simulate(plan, schedule, &rounded);
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
  return predicted;
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
