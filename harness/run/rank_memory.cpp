#include "harness/run/rank_memory.h"

#include <string>
#include <utility>

#include "policies/predict/sharding.h"
#include "policies/predict/step.h"

namespace rematch {
namespace {

HeldBytes held_by_kind(const StepHolders& holders) {
  return {{Holder::kParameters, holders.parameters},
          {Holder::kGradients, holders.gradients},
          {Holder::kOptimizer, holders.optimizer},
          {Holder::kSavedActivations, holders.saved_activations},
          {Holder::kRecomputeTransient, holders.recompute_transient},
          {Holder::kOther, holders.other}};
}

MemoryRecord memory_of(const StepPrediction& step, const Trace& trace) {
  MemoryRecord memory;
  memory.peak_allocated = step.peak_bytes();
  memory.peak_phase = step.peak.phase;
  if (step.peak.scope != kNone) {
    memory.peak_scope = trace.scopes[static_cast<std::size_t>(step.peak.scope)].path;
  }
  memory.after_forward = step.after_forward;
  memory.parameter = step.peak.holders.parameters;
  memory.baseline = step.before;
  memory.holders_at_peak = held_by_kind(step.peak.holders);
  for (int phase = 0; phase < kNumPhases; ++phase) {
    const Bytes peak = step.peak_by_phase[static_cast<std::size_t>(phase)];
    if (peak.count == 0) continue;
    memory.peak_by_phase[std::string(to_string(static_cast<Phase>(phase)))] = peak;
  }
  return memory;
}

}  // namespace

void predict_rank_memory(std::vector<Variant>& variants, const Trace& trace,
                         OptimizerModel optimizer, int world) {
  ShardedStep step = shard_step(trace, world);
  StepSimulator simulator(step.trace, optimizer);
  simulator.use_gathered(std::move(step.gathered));
  for (Variant& variant : variants) {
    MemoryRecord memory =
        memory_of(simulator.simulate(variant.plan, variant.identity.schedule), step.trace);
    memory.dead_save = variant.prediction.memory.dead_save;
    variant.prediction.memory = std::move(memory);
  }
}

}  // namespace rematch
