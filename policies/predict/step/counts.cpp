#include "policies/predict/step/counts.h"

#include <string_view>

#include "policies/predict/region/simulator.h"

namespace rematch {
namespace {

void count(PredictedCounts& counts, Phase phase, const std::string& name, OpClass op_class) {
  ++counts.by_op[static_cast<int>(phase)][name];
  ++counts.by_class[static_cast<int>(phase)][std::string(to_string(op_class))];
}

OpClass class_of(std::string_view name) { return op_class_of(name.substr(0, name.find('.'))); }

}  // namespace

PredictedCounts predict_counts(const Trace& trace, const Plan& plan, Schedule schedule) {
  PredictedCounts counts;
  for (const TracedOp& op : trace.ops) count(counts, Phase::kForward, op.name, op.op_class);
  for (const BackwardEvent& event : trace.backward) {
    if (event.kind != BackwardEvent::Kind::kOp) continue;
    count(counts, Phase::kBackward, event.op, class_of(event.op));
  }
  const std::vector<OpRange> ranges = region_ranges(trace, plan);
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const RegionType& type = plan.types[plan.regions[i].type];
    for (const ExecutedOp& executed :
         simulate_region(trace, ranges[i].first, ranges[i].end, type, schedule).executed) {
      const TracedOp& op = trace.ops[executed.op];
      count(counts, Phase::kRecompute, op.name, op.op_class);
    }
  }
  return counts;
}

}  // namespace rematch
