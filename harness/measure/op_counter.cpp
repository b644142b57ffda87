#include "harness/measure/op_counter.h"

#include <ATen/core/function_schema.h>

#include "harness/engine/record/op_facts.h"
#include "harness/measure/step_place.h"

namespace rematch {

void OpCounter::executed(const c10::OperatorHandle& op, Phase phase, const torch::jit::Stack&) {
  const auto slot = static_cast<std::size_t>(PhaseGuard::effective(phase));
  const std::lock_guard lock(mutex_);
  Counted& counted = counted_[&op.schema()];
  if (counted.op == nullptr) counted.op = &facts_of(op);
  ++counted.executed[slot];
}

CountsRecord OpCounter::record(int counted_steps) const {
  CountsRecord record;
  record.counted_steps = counted_steps;
  const std::lock_guard lock(mutex_);
  for (const auto& [schema, counted] : counted_) {
    const auto& [op, executed] = counted;
    const OpClass op_class = op_class_of(op->schema->name());
    for (std::size_t phase = 0; phase < kNumPhases; ++phase) {
      if (executed[phase] == 0) continue;
      record.by_op[phase][op->name] += executed[phase];
      record.by_class[phase][op_class] += executed[phase];
    }
  }
  return record;
}

}  // namespace rematch
