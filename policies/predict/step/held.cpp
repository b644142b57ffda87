#include "policies/predict/step/held.h"

#include <set>
#include <vector>

#include "policies/predict/region/region.h"
#include "policies/predict/region/trace_index.h"
#include "policies/predict/step/stored.h"

namespace rematch {
namespace {

Bytes bytes_of(const Trace& trace, const std::set<StorageId>& storages) {
  Bytes bytes;
  for (StorageId storage : storages) bytes += trace.storages[storage].bytes;
  return bytes;
}

std::set<StorageId> without(std::set<StorageId> storages, const std::set<StorageId>& others) {
  for (StorageId other : others) storages.erase(other);
  return storages;
}

std::set<StorageId> ids_of(const RegionGraph& graph, const std::vector<StoredStorage>& stored) {
  std::set<StorageId> ids;
  for (const StoredStorage& value : stored) ids.insert(graph.storage_ids[value.storage]);
  return ids;
}

// Returns the storages that no op of the trace allocated. These storages are alive for the whole
// step.
std::set<StorageId> alive_anyway(const Trace& trace) {
  std::set<StorageId> storages;
  for (const TracedValue& value : trace.values) {
    if (!value.producer) storages.insert(value.storage);
  }
  return storages;
}

}  // namespace

HeldAfterForward held_after_forward(const Trace& trace, const Plan& plan) {
  std::set<StorageId> kept;
  std::set<StorageId> inputs;
  Bytes copies;
  IdTable<PackId, bool> in_region(trace.packs.size(), false);
  const TraceIndex index(trace);
  const std::vector<OpRange> ranges = index.ranges(plan);
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const RegionGraph graph = index.graph(ranges[i]);
    for (const RegionSlot& slot : graph.slots) in_region[slot.pack] = true;
    // backward needs no tensor of this region, so the region holds nothing after forward
    if (!has_live_slot(graph)) continue;
    copies += copied_bytes(graph);
    const RegionType& type = plan.types[plan.regions[i].type];
    std::set<StorageId> gone;
    if (i + 1 < ranges.size()) gone = ids_of(graph, stored_storages(graph, type));
    for (StorageId storage : kept_storages(graph, type.ops)) {
      if (!gone.contains(storage)) kept.insert(storage);
    }
    for (StorageId storage : input_storages(graph)) {
      if (!gone.contains(storage)) inputs.insert(storage);
    }
  }
  std::set<StorageId> unmanaged;
  for (const PackId pack : trace.packs.ids()) {
    if (in_region[pack] || trace.packs[pack].dropped_at) continue;
    unmanaged.insert(trace.values[trace.packs[pack].value].storage);
  }
  inputs = without(inputs, kept);
  unmanaged = without(without(without(unmanaged, kept), inputs), alive_anyway(trace));
  return {bytes_of(trace, kept), bytes_of(trace, inputs) + copies, bytes_of(trace, unmanaged)};
}

}  // namespace rematch
