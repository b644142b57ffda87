#include "policies/predict/step/counts.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "policies/predict/device/collective_time.h"
#include "policies/predict/step/step.h"

namespace rematch {
namespace {

void count(PredictedCounts& counts, Phase phase, const std::string& name, OpClass op_class) {
  ++counts.by_op[static_cast<int>(phase)][name];
  ++counts.by_class[static_cast<int>(phase)][std::string(to_string(op_class))];
}

OpClass class_of(std::string_view name) { return op_class_of(name.substr(0, name.find('.'))); }

std::vector<OpId> recomputed_ops(const Trace& trace, const Plan& plan, Schedule schedule) {
  StepDetails details;
  StepSimulator(trace, OptimizerKind::kNothing).simulate(plan, schedule, &details);
  return std::move(details.recomputed);
}

}  // namespace

PredictedCounts predict_counts(const Trace& trace, const Plan& plan, Schedule schedule) {
  return predict_counts(trace, recomputed_ops(trace, plan, schedule));
}

PredictedCounts predict_counts(const Trace& trace, const std::vector<OpId>& recomputed) {
  PredictedCounts counts;
  for (const TracedOp& op : trace.ops) {
    if (!is_replay_only(op.name)) count(counts, Phase::kForward, op.name, op.op_class);
  }
  for (const BackwardEvent& event : trace.backward) {
    if (event.kind != BackwardEvent::Kind::kOp) continue;
    count(counts, Phase::kBackward, event.op, class_of(event.op));
  }
  for (const OpId op : recomputed) {
    count(counts, Phase::kRecompute, trace.ops[op].name, trace.ops[op].op_class);
  }
  return counts;
}

Traffic predict_traffic(const Trace& trace, const Plan& plan, Schedule schedule) {
  return predict_traffic(trace, recomputed_ops(trace, plan, schedule));
}

Traffic predict_traffic(const Trace& trace, const std::vector<OpId>& recomputed) {
  Traffic traffic;
  // `issuer` is the op, event or collective that sent_bytes() expects.
  const auto add = [&](Phase phase, const std::string& name, const auto& issuer) {
    const std::optional<CollectiveKind> kind = collective_kind(name);
    if (!kind) return;
    Issued& issued = traffic[static_cast<std::size_t>(phase)][*kind];
    ++issued.count;
    issued.sent += *sent_bytes(trace, issuer);
  };
  for (const TracedOp& op : trace.ops) add(Phase::kForward, op.name, op);
  for (const BackwardEvent& event : trace.backward) add(Phase::kBackward, event.op, event);
  for (const TracedCollective& sum : trace.gradient_sums) add(Phase::kOptimizer, sum.op, sum);
  for (const OpId op : recomputed) add(Phase::kRecompute, trace.ops[op].name, trace.ops[op]);
  return traffic;
}

}  // namespace rematch
