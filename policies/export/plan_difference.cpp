#include "policies/export/plan_difference.h"
#include "policies/predict/region/trace_index.h"

#include <algorithm>

namespace rematch {
namespace {

// The effect of a plan on one op of the trace.
struct OpFate {
  // absent: the op is outside all regions, so autograd keeps its saved tensors
  std::optional<OpRange> region;
  Treatment treatment = Treatment::kSave;
  bool skipped = false;
  bool operator==(const OpFate&) const = default;
};

IdTable<OpId, OpFate> fates(const Trace& trace, const Plan& plan) {
  IdTable<OpId, OpFate> fates(trace.ops.size());
  const TraceIndex trace_index(trace);
  const std::vector<OpRange> ranges = trace_index.ranges(plan);
  for (std::size_t index = 0; index < ranges.size(); ++index) {
    const OpRange range = ranges[index];
    const RegionType& type = plan.types[static_cast<std::size_t>(plan.regions[index].type)];
    const bool saves_some = std::any_of(type.ops.begin(), type.ops.end(), [](const PlannedOp& op) {
      return op.treatment == Treatment::kSave;
    });
    std::vector<bool> saved(type.ops.size());
    if (saves_some) saved = saved_ops(trace_index.graph(range), type);
    for (const OpId op : range.ids()) {
      const auto local = static_cast<std::size_t>(op - range.first);
      Treatment treatment = type.ops[local].treatment;
      if (treatment == Treatment::kSave && !saved[local]) treatment = Treatment::kRecompute;
      fates[op] = {range, treatment, type.ops[local].skipped};
    }
  }
  return fates;
}

const ByStore<std::vector<RegionInput>>& stored_inputs(const Plan& plan, std::size_t region) {
  return plan.types[static_cast<std::size_t>(plan.regions[region].type)].stored_inputs;
}

// Returns the number of inputs that the two plans treat differently. Describes the first such input
// in `words`.
std::size_t count_inputs(const Plan& plan, const Plan& other, std::size_t region,
                         std::string& words) {
  std::size_t count = 0;
  for (const StoreTraits& store : kStores) {
    const auto& inputs = stored_inputs(plan, region)[store.store];
    const auto& others = stored_inputs(other, region)[store.store];
    if (inputs == others) continue;
    count += std::max(inputs.size(), others.size());
    if (!words.empty()) continue;
    words = plan.regions[region].first_scope +
            (inputs.empty() ? ": the mode keeps its inputs " : ": the plan keeps its inputs ") +
            store.place + (inputs.empty() ? ", the plan does not" : ", the mode does not");
  }
  return count;
}

// Returns whether nothing needs the op's result after a recompute. The two plans then differ at
// most in whether they run the op again. This is so for an op after the last saved tensor of a
// region that both plans recompute.
bool only_runs_for_nothing(const TraceIndex& trace_index, OpId op, const OpFate& planned,
                           const OpFate& other) {
  if (!planned.region || planned.region != other.region) return false;
  if (planned.treatment.is_kept() || other.treatment.is_kept()) return false;
  return op - planned.region->first >= trace_index.graph(*planned.region).stop;
}

bool all_stop_early(const Plan& plan) {
  return std::all_of(plan.types.begin(), plan.types.end(),
                     [](const RegionType& type) { return type.early_stop; });
}

std::string block_of(const Trace& trace, OpId op) {
  for (const TracedBlock& block : trace.blocks) {
    const TracedScope& scope = trace.scopes[block.scope];
    if (op >= scope.first_op && op < scope.end_op) return scope.path;
  }
  return "";
}

std::string words(const Trace& trace, OpId op, const OpFate& planned, const OpFate& other) {
  const std::string block = block_of(trace, op);
  const std::string place = block.empty() ? "the part outside the layers" : block;
  if (planned.region.has_value() != other.region.has_value()) {
    return place + (planned.region ? " is checkpointed by the plan, but not by the mode"
                                   : " is checkpointed by the mode, but not by the plan");
  }
  if (planned.region != other.region)
    return place + " is in different regions in the plan and in the mode";
  const auto does = [](const OpFate& fate) {
    if (fate.skipped) return std::string(" skips");
    if (!fate.treatment.is_kept()) return std::string(" recomputes");
    return " " + std::string(traits_of(*fate.treatment.kept_in).verb);
  };
  const TracedOp& traced = trace.ops[op];
  return "the plan" + does(planned) + " " + traced.name + " (op " +
         std::to_string(op - planned.region->first) + " of " + place + "); the mode" + does(other) +
         " it";
}

}  // namespace

// An op counts as saved if at least one of its results is kept.
std::vector<bool> saved_ops(const RegionGraph& graph, const RegionType& type) {
  const std::vector<bool> kept = kept_values(graph, type.ops);
  std::vector<bool> saved(graph.ops.size());
  for (std::size_t op = 0; op < graph.ops.size(); ++op) {
    if (type.ops[op].treatment != Treatment::kSave) continue;
    const std::vector<int>& outputs = graph.ops[op].outputs;
    saved[op] = std::any_of(outputs.begin(), outputs.end(),
                            [&](int value) { return kept[static_cast<std::size_t>(value)]; });
  }
  return saved;
}

std::optional<PlanDifference> difference_of(const Trace& trace, const Plan& plan,
                                            const Plan& other) {
  const IdTable<OpId, OpFate> planned = fates(trace, plan);
  const IdTable<OpId, OpFate> others = fates(trace, other);
  const TraceIndex trace_index(trace);
  PlanDifference difference;
  std::string first_of_ends;
  for (const OpId op : planned.ids()) {
    if (planned[op] == others[op]) continue;
    if (only_runs_for_nothing(trace_index, op, planned[op], others[op])) {
      if (first_of_ends.empty()) first_of_ends = words(trace, op, planned[op], others[op]);
      continue;
    }
    if (difference.num_ops++ == 0) {
      difference.first = words(trace, op, planned[op], others[op]);
    }
  }
  if (difference.num_ops != 0) return difference;
  for (std::size_t region = 0; region < std::min(plan.regions.size(), other.regions.size());
       ++region) {
    difference.num_ops += count_inputs(plan, other, region, difference.first);
  }
  if (difference.num_ops != 0) return difference;
  const bool same_stop = all_stop_early(plan) == all_stop_early(other);
  if (plan.regions.empty() || (same_stop && first_of_ends.empty())) return std::nullopt;
  difference.of_early_stop = true;
  difference.first = same_stop ? first_of_ends
                     : all_stop_early(plan)
                         ? "the mode re-runs a region to its end, but the plan stops early"
                         : "the plan re-runs a region to its end, but the mode stops early";
  return difference;
}

}  // namespace rematch
