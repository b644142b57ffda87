#include "reports/record/simulated_memory.h"

#include <string>

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

}  // namespace

MemoryRecord memory_of(const StepPrediction& step, const Trace& trace) {
  MemoryRecord memory;
  memory.peak_allocated = step.peak_bytes();
  memory.peak_phase = step.peak.phase;
  if (step.peak.scope) memory.peak_scope = trace.scopes[*step.peak.scope].path;
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

CountsRecord counts_of(const PredictedCounts& counts) {
  CountsRecord record;
  record.counted_steps = 1;
  record.by_op = counts.by_op;
  for (std::size_t phase = 0; phase < kNumPhases; ++phase) {
    for (const auto& [name, executed] : counts.by_class[phase]) {
      record.by_class[phase][from_string<OpClass>(name).value_or(OpClass::kOther)] = executed;
    }
  }
  return record;
}

}  // namespace rematch
