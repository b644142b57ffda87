#include "policies/catalogue/region_types.h"

#include <algorithm>
#include <utility>

#include "policies/predict/region/order.h"
#include "policies/trace/ring_parts.h"

namespace rematch {
namespace {

// Returns the reads of all ops that run when the whole region is recomputed, including ops whose
// results nothing needs.
std::vector<RegionUse> reads_of_rerun_ops(const RegionGraph& graph, const RegionType& type) {
  std::vector<RegionUse> reads;
  const std::size_t end = type.early_stop ? static_cast<std::size_t>(graph.stop) : type.ops.size();
  for (std::size_t op = 0; op < end; ++op) {
    if (type.ops[op].treatment.is_kept() || type.ops[op].skipped) continue;
    reads.insert(reads.end(), graph.ops[op].reads.begin(), graph.ops[op].reads.end());
  }
  return reads;
}

// Marks dead saves. An op is a dead save if its result is saved, but neither backward nor a needed
// op of recompute reads it. If the plan has saved regions, every op that recompute runs counts as
// needed.
void mark_dead_saves(const RegionGraph& graph, RegionType& type, bool has_saved_regions) {
  std::vector<PlannedOp>& ops = type.ops;
  const std::vector<bool> kept = kept_values(graph, ops);
  std::vector<RegionUse> roots;
  std::vector<bool> wanted(graph.values.size(), false);
  for (const RegionSlot& slot : graph.slots) {
    if (slot.is_dropped) continue;
    roots.push_back(slot.use);
    wanted[slot.use.value] = true;
  }
  if (has_saved_regions) {
    for (const RegionUse& read : reads_of_rerun_ops(graph, type)) {
      roots.push_back(read);
      wanted[read.value] = true;
    }
  }
  const std::vector<bool> executed = closure_of(graph, kept, roots);
  for (std::size_t i = 0; i < graph.ops.size(); ++i) {
    if (!executed[i]) continue;
    for (const RegionUse& read : graph.ops[i].reads) wanted[read.value] = true;
  }
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const std::vector<int>& outputs = graph.ops[i].outputs;
    ops[i].dead_save =
        ops[i].treatment.is_kept() &&
        std::none_of(outputs.begin(), outputs.end(), [&](int v) { return kept[v] && wanted[v]; });
  }
}

// Drops the dead saves of a policy that keeps every useful result (Policy::inverse), because
// autograd would drop these results too.
void drop_dead_saves(std::vector<PlannedOp>& ops) {
  for (PlannedOp& op : ops) {
    if (!op.dead_save) continue;
    op.dead_save = false;
    op.treatment = Treatment::kRecompute;
    op.reason = "nothing reads it: not kept and not recomputed";
  }
}

// Marks the ops that recompute skips. These are ops of saved regions whose results are not kept,
// and views of the regions' results. A skipped view still runs if an op reads it.
void skip_in_saved_regions(const OpTreater& treater, OpId first_op, const RegionGraph& graph,
                           std::vector<PlannedOp>& ops) {
  std::vector<bool> made_by_saved_region(graph.values.size(), false);
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const bool is_inside =
        treater.is_in_saved_region(first_op + static_cast<std::int32_t>(i)) ||
        (graph.ops[i].is_view &&
         std::any_of(graph.ops[i].reads.begin(), graph.ops[i].reads.end(),
                     [&](const RegionUse& read) { return made_by_saved_region[read.value]; }));
    if (!is_inside) continue;
    ops[i].skipped = !ops[i].treatment.is_kept();
    for (const int value : graph.ops[i].outputs) made_by_saved_region[value] = true;
  }
}

// Marks the parts of a ring whose result is kept: see Note [Parts of ring attention].
void skip_parts_of_kept_rings(const Trace& trace, OpId first_op, std::vector<PlannedOp>& ops) {
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (!ops[i].treatment.is_kept()) continue;
    for (const OpId part : parts_of_ring(trace, first_op + static_cast<std::int32_t>(i))) {
      if (part < first_op) continue;
      PlannedOp& planned = ops[static_cast<std::size_t>(part.index - first_op.index)];
      planned.skipped = !planned.treatment.is_kept();
    }
  }
}

// Drops the results of saved regions that no op reads.
void drop_dead_results(const OpTreater& treater, OpId first_op, std::vector<PlannedOp>& ops) {
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (!ops[i].dead_save) continue;
    if (!treater.is_in_saved_region(first_op + static_cast<std::int32_t>(i))) continue;
    ops[i].dead_save = false;
    ops[i].treatment = Treatment::kRecompute;
    ops[i].skipped = true;
    ops[i].reason += ", and nothing reads it";
  }
}

// Leaves the results of dead saves out of stores, because nothing reads these results.
void drop_dead_moves(std::vector<PlannedOp>& ops) {
  for (PlannedOp& op : ops) {
    if (!op.dead_save || !op.treatment.is_moved()) continue;
    op.dead_save = false;
    op.treatment = Treatment::kRecompute;
    op.reason += ", but nothing reads it";
  }
}

// Recomputes results that the region later overwrites in place, because they cannot be kept.
void recompute_what_is_overwritten(const RegionGraph& graph, std::vector<PlannedOp>& ops) {
  const std::vector<bool> kept = kept_values(graph, ops);
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (!ops[i].treatment.is_kept()) continue;
    const std::vector<int>& outputs = graph.ops[i].outputs;
    if (std::any_of(outputs.begin(), outputs.end(), [&](int value) { return kept[value]; }))
      continue;
    ops[i].treatment = Treatment::kRecompute;
    ops[i].reason += ", but is written in place later";
  }
}

}  // namespace

RegionType RegionTypeMaker::make(const PlacedRegion& region, const Adjust& adjust) {
  RegionGraph graph = index_.graph(region.range);
  RegionType type;
  type.ops = treater_.treat(region);
  if (adjust) adjust(type.ops);
  type.early_stop = policy_.early_stop;
  // Under an inverse policy, an op whose result nothing reads is marked as recomputed. It must not
  // run again, so the region runs by demand.
  type.by_demand = policy_.inverse;
  recompute_what_is_overwritten(graph, type.ops);
  const bool has_saved_regions = !policy_.save_regions.empty();
  skip_in_saved_regions(treater_, region.range.first, graph, type.ops);
  skip_parts_of_kept_rings(treater_.trace(), region.range.first, type.ops);
  mark_dead_saves(graph, type, has_saved_regions);
  drop_dead_moves(type.ops);
  if (policy_.inverse) drop_dead_saves(type.ops);
  drop_dead_results(treater_, region.range.first, type.ops);
  for (const Known& known : known_) {
    if (known.type.ops == type.ops && same_behaviour(known.graph, graph)) return known.type;
  }
  choose_order(graph, type);
  known_.push_back({std::move(graph), type});
  return type;
}

}  // namespace rematch
