#include "policies/predict/step/counts.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "policies/predict/device/collective_time.h"
#include "policies/predict/step/step.h"
#include "policies/trace/accumulation.h"

namespace rematch {
namespace {

void add(PredictedCounts& counts, Phase phase, const std::string& name, OpClass op_class,
         std::int64_t times) {
  counts.by_op[static_cast<int>(phase)][name] += times;
  counts.by_class[static_cast<int>(phase)][std::string(to_string(op_class))] += times;
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
  const std::int64_t num = micro_batches(trace);
  PredictedCounts counts;
  for (const TracedOp& op : trace.ops) {
    if (!is_replay_only(op.name)) add(counts, Phase::kForward, op.name, op.op_class, num);
  }
  for (const BackwardEvent& event : trace.backward) {
    if (event.kind != BackwardEvent::Kind::kOp) continue;
    add(counts, Phase::kBackward, event.op, class_of(event.op), num);
  }
  for (const auto& [stored_by, times] : trace.gradient_stores) {
    add(counts, Phase::kBackward, stored_by, class_of(stored_by), times);
    add(counts, Phase::kBackward, kAddsGradient, class_of(kAddsGradient), -times);
  }
  for (const OpId op : recomputed) {
    add(counts, Phase::kRecompute, trace.ops[op].name, trace.ops[op].op_class, num);
  }
  return counts;
}

Traffic predict_traffic(const Trace& trace, const Plan& plan, Schedule schedule) {
  return predict_traffic(trace, recomputed_ops(trace, plan, schedule));
}

Traffic predict_traffic(const Trace& trace, const std::vector<OpId>& recomputed) {
  const std::int64_t num = micro_batches(trace);
  Traffic traffic;
  // `issuer` is what issues the collective; sent_bytes() accepts it as an argument.
  const auto issue = [&](Phase phase, const std::string& name, const auto& issuer,
                         std::int64_t times) {
    const std::optional<CollectiveKind> kind = collective_kind(name);
    if (!kind) return;
    Issued& issued = traffic[static_cast<std::size_t>(phase)][*kind];
    issued.count += times;
    issued.sent += *sent_bytes(trace, issuer) * times;
  };
  for (const TracedOp& op : trace.ops) issue(Phase::kForward, op.name, op, num);
  for (const BackwardEvent& event : trace.backward) {
    issue(Phase::kBackward, event.op, event, num);
  }
  for (const TracedCollective& sum : trace.gradient_sums) issue(Phase::kOptimizer, sum.op, sum, 1);
  for (const OpId op : recomputed) {
    issue(Phase::kRecompute, trace.ops[op].name, trace.ops[op], num);
  }
  return traffic;
}

}  // namespace rematch
