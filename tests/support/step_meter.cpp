#include "tests/support/step_meter.h"

#include <algorithm>

#include "harness/engine/record/op_facts.h"
#include "harness/measure/memory.h"

namespace rematch::testing {

std::int64_t cpu_bytes() { return current_cpu_memory().total.count; }

StepMeter::StepMeter() : baseline_(cpu_bytes()), guard_(this) {}

void StepMeter::executed(const c10::OperatorHandle& op, Phase phase, const torch::jit::Stack&) {
  const std::string& name = facts_of(op).name;
  if (name != "aten::detach") ++ops_[name];
  if (phase == Phase::kRecompute) ++num_recomputed_;
  peak_ = std::max(peak_, cpu_bytes() - baseline_);
}

void StepMeter::note_after_forward() { after_forward_ = cpu_bytes() - baseline_; }

}  // namespace rematch::testing
