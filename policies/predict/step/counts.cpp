#include "policies/predict/step/counts.h"

#include <optional>
#include <string>
#include <string_view>

#include "policies/predict/device/collective_time.h"
#include "policies/predict/region/simulator.h"
#include "policies/predict/region/trace_index.h"

namespace rematch {
namespace {

void count(PredictedCounts& counts, Phase phase, const std::string& name, OpClass op_class) {
  ++counts.by_op[static_cast<int>(phase)][name];
  ++counts.by_class[static_cast<int>(phase)][std::string(to_string(op_class))];
}

OpClass class_of(std::string_view name) { return op_class_of(name.substr(0, name.find('.'))); }

template <class Visit>
void for_each_recomputed(const Trace& trace, const Plan& plan, Schedule schedule,
                         const Visit& visit) {
  const std::vector<OpRange> ranges = region_ranges(trace, plan);
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const RegionType& type = plan.types[plan.regions[i].type];
    for (const ExecutedOp& executed :
         simulate_region(trace, ranges[i].first, ranges[i].end, type, schedule).executed) {
      visit(trace.ops[executed.op]);
    }
  }
}

}  // namespace

PredictedCounts predict_counts(const Trace& trace, const Plan& plan, Schedule schedule) {
  PredictedCounts counts;
  for (const TracedOp& op : trace.ops) {
    if (!is_replay_only(op.name)) count(counts, Phase::kForward, op.name, op.op_class);
  }
  for (const BackwardEvent& event : trace.backward) {
    if (event.kind != BackwardEvent::Kind::kOp) continue;
    count(counts, Phase::kBackward, event.op, class_of(event.op));
  }
  for_each_recomputed(trace, plan, schedule, [&](const TracedOp& op) {
    count(counts, Phase::kRecompute, op.name, op.op_class);
  });
  return counts;
}

Traffic predict_traffic(const Trace& trace, const Plan& plan, Schedule schedule) {
  Traffic traffic;
  // `issuer` is an op or an event that sent_bytes() accepts.
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
  for_each_recomputed(trace, plan, schedule,
                      [&](const TracedOp& op) { add(Phase::kRecompute, op.name, op); });
  return traffic;
}

}  // namespace rematch
