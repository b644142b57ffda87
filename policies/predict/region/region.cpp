#include "policies/predict/region/region.h"

#include <algorithm>

#include "policies/replay/replay_planner.h"

namespace rematch {

Bytes copied_bytes(const RegionGraph& graph) {
  Bytes bytes;
  for (const RegionCopy& copy : graph.copies) bytes += copy.bytes;
  return bytes;
}

bool has_live_slot(const RegionGraph& graph) {
  return std::any_of(graph.slots.begin(), graph.slots.end(),
                     [](const RegionSlot& slot) { return !slot.is_dropped; });
}

std::vector<StorageId> input_storages(const RegionGraph& graph) {
  std::vector<StorageId> inputs;
  for (std::size_t storage = 0; storage < graph.storages.size(); ++storage) {
    if (graph.storages[storage].is_input) inputs.push_back(graph.storage_ids[storage]);
  }
  std::sort(inputs.begin(), inputs.end());
  return inputs;
}

bool can_be_recomputed(const RegionGraph& graph, const RegionUse& slot) {
  const RegionValue& value = graph.values[slot.value];
  const RegionStorage& storage = graph.storages[value.storage];
  const auto num_writes = static_cast<std::int32_t>(storage.writes.size());
  return value.producer.has_value() && (storage.outside || slot.version == num_writes);
}

bool same_behaviour(const RegionGraph& a, const RegionGraph& b) {
  return a.ops == b.ops && a.values == b.values && a.storages == b.storages &&
         a.copies == b.copies && a.events == b.events && a.stop == b.stop &&
         std::equal(a.slots.begin(), a.slots.end(), b.slots.begin(), b.slots.end(),
                    [](const RegionSlot& x, const RegionSlot& y) {
                      return x.use == y.use && x.at_op == y.at_op && x.is_dropped == y.is_dropped;
                    });
}

std::vector<bool> kept_values(const RegionGraph& graph, const std::vector<PlannedOp>& ops) {
  std::vector<bool> kept = kept_if_all_is_recomputed(graph);
  for (std::size_t i = 0; i < graph.ops.size(); ++i) {
    const RegionOp& op = graph.ops[i];
    if (!ops[i].treatment.is_kept() || op.is_view || !op.writes.empty()) continue;
    for (int output : op.outputs) {
      const RegionStorage& storage = graph.storages[graph.values[output].storage];
      if (!storage.outside && storage.writes.empty()) kept[output] = true;
    }
  }
  return kept;
}

std::vector<bool> kept_if_all_is_recomputed(const RegionGraph& graph) {
  std::vector<bool> constants;
  for (const RegionValue& value : graph.values) constants.push_back(value.constant);
  return constants;
}

std::vector<StorageId> kept_storages(const RegionGraph& graph, const std::vector<PlannedOp>& ops) {
  const std::vector<bool> kept = kept_values(graph, ops);
  std::vector<StorageId> storages;
  for (std::size_t value = 0; value < kept.size(); ++value) {
    if (kept[value]) storages.push_back(graph.storage_ids[graph.values[value].storage]);
  }
  std::sort(storages.begin(), storages.end());
  storages.erase(std::unique(storages.begin(), storages.end()), storages.end());
  return storages;
}

std::vector<bool> closure_of(const RegionGraph& graph, const std::vector<bool>& kept,
                             const std::vector<RegionUse>& roots) {
  ReplayTables tables;
  ReplayPlanner planner(RegionIntegers(graph), tables);
  for (std::size_t value = 0; value < kept.size(); ++value) {
    if (kept[value]) planner.hold(static_cast<int>(value));
  }
  planner.plan_closure(roots);
  std::vector<bool> closure;
  for (std::size_t op = 0; op < graph.ops.size(); ++op) {
    closure.push_back(planner.is_planned(static_cast<int>(op)));
  }
  return closure;
}

}  // namespace rematch
