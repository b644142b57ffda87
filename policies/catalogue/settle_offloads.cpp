#include "policies/catalogue/settle_offloads.h"

#include <algorithm>

#include "policies/predict/region/trace_index.h"
#include "policies/predict/step/offload.h"

namespace rematch {
namespace {

// Knows the holders of each storage on the device from forward to backward.
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
    if (planned.treatment != Treatment::kOffload) continue;
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

void choose_inputs(const Policy& policy, const Trace& trace, const RegionGraph& graph,
                   const Holders& holders, RegionType& type) {
  for (const RegionInput& input : offloadable_inputs(trace, graph)) {
    const int local = graph.values[graph.ops[input.op].reads[input.argument].value].storage;
    const StorageId storage = graph.storage_ids[local];
    if (holders.num_readers(storage) != 1 || holders.is_held(storage)) continue;
    if (graph.storages[local].bytes < policy.offload_at_least) continue;
    type.offload_inputs.push_back(input);
  }
}

bool has_any(const Plan& plan, std::size_t first, std::size_t end) {
  for (std::size_t i = first; i < end; ++i) {
    if (offloads_anything(plan.types[plan.regions[i].type])) return true;
  }
  return false;
}

}  // namespace

bool asks_to_offload(const Policy& policy) {
  return !policy.offload.empty() || policy.offload_saved || policy.offload_inputs;
}

void settle_offloads(const Policy& policy, const Trace& trace, const TraceIndex& index,
                     const std::vector<OpRange>& ranges, std::vector<RegionType>& types) {
  if (!asks_to_offload(policy)) return;
  std::vector<RegionGraph> graphs;
  for (const OpRange range : ranges) graphs.push_back(index.graph(range));
  const Holders holders(trace, ranges, graphs, types);
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    save_what_stays(graphs[i], holders, types[i]);
    if (policy.offload_inputs) choose_inputs(policy, trace, graphs[i], holders, types[i]);
  }
}

Bytes offloaded_bytes(const Plan& plan, const Trace& trace) {
  Bytes bytes;
  const TraceIndex index(trace);
  const std::vector<OpRange> ranges = index.ranges(plan);
  for (std::size_t i = 0; i + 1 < ranges.size(); ++i) {
    const RegionType& type = plan.types[plan.regions[i].type];
    if (!offloads_anything(type)) continue;
    const RegionGraph graph = index.graph(ranges[i]);
    bytes += offloaded_storages(graph, type).bytes(graph);
  }
  return bytes;
}

std::string explain_empty_offload(const Policy& policy, const Plan& plan) {
  const std::size_t num_regions = plan.regions.size();
  if (num_regions > 0 && has_any(plan, num_regions - 1, num_regions)) {
    return "its last region cannot offload, because backward begins there, and no earlier region "
           "offloads anything";
  }
  if (policy.offload_inputs && policy.offload.empty() && !policy.offload_saved) {
    return "the inputs of its regions stay on the device anyway, or no op produced them";
  }
  return "the selected tensors stay on the device anyway, are not read in backward, are below the "
         "size limit, or cannot be offloaded";
}

}  // namespace rematch
