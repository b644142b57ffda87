#include "harness/measure/op_counter.h"

#include <ATen/core/function_schema.h>

#include "harness/measure/step_place.h"

namespace rematch {

std::string op_name(const c10::OperatorHandle& op) {
  const c10::OperatorName& name = op.operator_name();
  return name.overload_name.empty() ? name.name : name.name + "." + name.overload_name;
}

void OpCounter::executed(const c10::OperatorHandle& op, Phase phase, const torch::jit::Stack&) {
  const auto slot = static_cast<std::size_t>(PhaseGuard::effective(phase));
  const std::lock_guard lock(mutex_);
  Facts& facts = facts_[&op.schema()];
  if (facts.name.empty()) {
    facts.name = op_name(op);
    facts.op_class = op_class_of(op.operator_name().name);
  }
  ++facts.executed[slot];
}

CountsRecord OpCounter::record(int counted_steps) const {
  CountsRecord record;
  record.counted_steps = counted_steps;
  const std::lock_guard lock(mutex_);
  for (const auto& [schema, facts] : facts_) {
    for (std::size_t phase = 0; phase < kNumPhases; ++phase) {
      const std::int64_t executed = facts.executed[phase];
      if (executed == 0) continue;
      record.by_op[phase][facts.name] += executed;
      record.by_class[phase][facts.op_class] += executed;
    }
  }
  return record;
}

void OpCounter::reset() {
  const std::lock_guard lock(mutex_);
  facts_.clear();
}

}  // namespace rematch
