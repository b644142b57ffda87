#include "policies/catalogue/settle_stores.h"

#include <algorithm>

#include "policies/predict/region/trace_index.h"
#include "policies/predict/step/stored.h"

namespace rematch {
namespace {

// Determines what holds each storage on the device between forward and backward.
class Holders {
 public:
  Holders(const Trace& trace, const std::vector<OpRange>& ranges,
          const std::vector<RegionGraph>& graphs, const std::vector<RegionType>& types)
      : trace_(trace), readers_(trace.storages.size(), 0), is_held_(trace.storages.size(), false) {
    for (const StorageId storage : trace.storages.ids()) {
      is_held_[storage] = !trace.storages[storage].freed_at;
    }
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      for (const StorageId input : input_storages(graphs[i])) ++readers_[input];
      hold_saved(graphs[i], types[i]);
    }
    hold_packs_outside(ranges);
  }

  int num_readers(StorageId storage) const { return readers_[storage]; }
  // Returns whether the storage is held by the program, by autograd outside regions, or by a region
  // that saves it.
  bool is_held(StorageId storage) const { return is_held_[storage]; }

 private:
  void hold_saved(const RegionGraph& graph, const RegionType& type) {
    const std::vector<bool> kept = kept_values(graph, type.ops);
    for (std::size_t op = 0; op < graph.ops.size(); ++op) {
      if (type.ops[op].treatment != Treatment::kSave) continue;
      for (const int output : graph.ops[op].outputs) {
        if (kept[output]) is_held_[graph.storage_ids[graph.values[output].storage]] = true;
      }
    }
  }

  void hold_packs_outside(const std::vector<OpRange>& ranges) {
    IdTable<PackId, bool> is_inside(trace_.packs.size(), false);
    for (const OpRange range : ranges) {
      for (const PackId pack : packs_of(trace_, range)) is_inside[pack] = true;
    }
    for (const PackId pack : trace_.packs.ids()) {
      if (is_inside[pack] || trace_.packs[pack].dropped_at) continue;
      is_held_[trace_.values[trace_.packs[pack].value].storage] = true;
    }
  }

  const Trace& trace_;
  IdTable<StorageId, int> readers_;  // number of regions that read the storage
  IdTable<StorageId, bool> is_held_;
};

void save_what_stays(const RegionGraph& graph, const Holders& holders, RegionType& type) {
  for (std::size_t op = 0; op < graph.ops.size(); ++op) {
    PlannedOp& planned = type.ops[op];
    if (!planned.treatment.is_moved()) continue;
    const std::vector<int>& outputs = graph.ops[op].outputs;
    const bool stays = std::all_of(outputs.begin(), outputs.end(), [&](int output) {
      const StorageId storage = graph.storage_ids[graph.values[output].storage];
      return holders.num_readers(storage) > 0 || holders.is_held(storage);
    });
    if (!stays) continue;
    planned.treatment = Treatment::kSave;
    planned.reason += ", but is held on the device anyway";
  }
}

// Returns the store that the policy moves region inputs to. Returns nullopt if the policy moves no
// inputs.
std::optional<Store> store_of_inputs(const Policy& policy) {
  for (const StoreTraits& store : kStores) {
    if (policy.moved_to[store.store].inputs) return store.store;
  }
  return std::nullopt;
}

void choose_inputs(const Policy& policy, const Trace& trace, const RegionGraph& graph,
                   const Holders& holders, RegionType& type) {
  const std::optional<Store> store = store_of_inputs(policy);
  if (!store) return;
  for (const RegionInput& input : movable_inputs(trace, graph)) {
    const int local = graph.values[graph.ops[input.op].reads[input.argument].value].storage;
    const StorageId storage = graph.storage_ids[local];
    if (holders.num_readers(storage) != 1 || holders.is_held(storage)) continue;
    if (graph.storages[local].bytes < policy.moved_to[*store].at_least) continue;
    type.stored_inputs[*store].push_back(input);
  }
}

bool has_any(const Plan& plan, std::size_t first, std::size_t end) {
  for (std::size_t i = first; i < end; ++i) {
    if (moves_anything(plan.types[plan.regions[i].type])) return true;
  }
  return false;
}

}  // namespace

std::optional<Store> store_asked_for(const Policy& policy) {
  for (const StoreTraits& store : kStores) {
    if (policy.moved_to[store.store].moves_anything()) return store.store;
  }
  return std::nullopt;
}

void settle_stores(const Policy& policy, const Trace& trace, const TraceIndex& index,
                   const std::vector<OpRange>& ranges, std::vector<RegionType>& types) {
  if (!store_asked_for(policy)) return;
  std::vector<RegionGraph> graphs;
  for (const OpRange range : ranges) graphs.push_back(index.graph(range));
  const Holders holders(trace, ranges, graphs, types);
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    save_what_stays(graphs[i], holders, types[i]);
    choose_inputs(policy, trace, graphs[i], holders, types[i]);
  }
}

Bytes moved_bytes(const Plan& plan, const Trace& trace) {
  Bytes bytes;
  const TraceIndex index(trace);
  const std::vector<OpRange> ranges = index.ranges(plan);
  for (std::size_t i = 0; i + 1 < ranges.size(); ++i) {
    const RegionType& type = plan.types[plan.regions[i].type];
    if (!moves_anything(type)) continue;
    const RegionGraph graph = index.graph(ranges[i]);
    bytes += bytes_of(stored_storages(graph, type), graph);
  }
  return bytes;
}

std::string explain_empty_move(const Policy& policy, Store store, const Plan& plan) {
  const StoreRule& rule = policy.moved_to[store];
  const std::string word = traits_of(store).word;
  const std::size_t num_regions = plan.regions.size();
  if (num_regions > 0 && has_any(plan, num_regions - 1, num_regions)) {
    return "its last region cannot " + word +
           ", because backward begins there, and no earlier region " + traits_of(store).verb +
           " anything";
  }
  if (rule.inputs && rule.results.empty() && !rule.saved) {
    return "the inputs of its regions stay on the device anyway, or no op produced them";
  }
  return "the selected tensors stay on the device anyway, are not read in backward, are below the "
         "size limit, or cannot be kept " +
         std::string(traits_of(store).place);
}

}  // namespace rematch
