#include "policies/predict/step/counts.h"

#include <optional>
#include <string>
#include <string_view>

#include "policies/predict/device/collective_time.h"
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

namespace {

class Counter {
 public:
  explicit Counter(const Trace& trace) : trace_(trace) {}

  // `issuer`: what sent_bytes() takes.
  template <class Issuer>
  void add(Phase phase, const std::string& name, const Issuer& issuer) {
    const std::optional<CollectiveKind> kind = collective_kind(name);
    if (!kind) return;
    Issued& issued = traffic_[static_cast<std::size_t>(phase)][*kind];
    ++issued.count;
    issued.sent += *sent_bytes(trace_, issuer);
  }
  const Traffic& traffic() const { return traffic_; }

 private:
  const Trace& trace_;
  Traffic traffic_;
};

}  // namespace

Traffic predict_traffic(const Trace& trace, const Plan& plan, Schedule schedule) {
  Counter counter(trace);
  for (const TracedOp& op : trace.ops) counter.add(Phase::kForward, op.name, op);
  for (const BackwardEvent& event : trace.backward) {
    counter.add(Phase::kBackward, event.op, event);
  }
  for (const TracedCollective& sum : trace.gradient_sums) {
    counter.add(Phase::kOptimizer, sum.op, sum);
  }
  const std::vector<OpRange> ranges = region_ranges(trace, plan);
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const RegionType& type = plan.types[plan.regions[i].type];
    for (const ExecutedOp& executed :
         simulate_region(trace, ranges[i].first, ranges[i].end, type, schedule).executed) {
      const TracedOp& op = trace.ops[executed.op];
      counter.add(Phase::kRecompute, op.name, op);
    }
  }
  return counter.traffic();
}

}  // namespace rematch
