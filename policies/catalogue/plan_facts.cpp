#include "policies/catalogue/plan_facts.h"

#include <algorithm>
#include <set>

#include "policies/catalogue/place_regions.h"
#include "policies/predict/region/trace_index.h"
#include "policies/predict/step/stored.h"

namespace rematch {
namespace {

// Returns the name of the block list that contains the first block in the range.
std::string list_of(const Trace& trace, OpRange range) {
  for (const TracedBlock& block : trace.blocks) {
    const TracedScope& scope = trace.scopes[block.scope];
    if (scope.first_op < range.end && range.first < scope.end_op) return block.list;
  }
  return "";
}

// Names a saved tensor by the op that made it.
std::string slot_name(const Trace& trace, const RegionType& type, OpRange range, PackId pack) {
  const ValueId value = trace.packs[pack].value;
  const std::optional<OpId> producer = trace.values[value].producer;
  if (!producer || *producer < range.first || *producer >= range.end) {
    return trace.values[value].is_parameter ? "a parameter" : "a tensor from outside";
  }
  const PlannedOp& op = type.ops[*producer - range.first];
  std::string name = op.name;
  name += " (op " + std::to_string(*producer - range.first);
  if (!op.scope.empty()) name += ", " + op.scope;
  return name + ")";
}

// Returns the bytes of dead saves: ops whose results are saved although nothing reads them.
Bytes dead_bytes(const RegionType& type) {
  Bytes bytes;
  for (const PlannedOp& op : type.ops) {
    if (op.dead_save) bytes += op.bytes;
  }
  return bytes;
}

}  // namespace

std::vector<LayerFacts> layer_facts(const Plan& plan, const Trace& trace) {
  std::vector<LayerFacts> lists;
  for (const BlockList& list : block_lists(trace)) {
    lists.push_back({list.name, list.num_layers, {}, {}});
  }
  const std::vector<OpRange> ranges = region_ranges(trace, plan);
  std::vector<std::set<int>> checkpointed(lists.size());
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const auto list = std::find_if(
        lists.begin(), lists.end(),
        [name = list_of(trace, ranges[i])](const LayerFacts& facts) { return facts.list == name; });
    if (list == lists.end()) continue;
    const std::vector<int>& layers = plan.regions[i].layers;
    auto& regions = list->checkpointed;
    if (regions.empty() || regions.back() != layers) regions.push_back(layers);
    checkpointed[static_cast<std::size_t>(list - lists.begin())].insert(layers.begin(),
                                                                        layers.end());
  }
  for (std::size_t i = 0; i < lists.size(); ++i) {
    for (int layer = 0; layer < lists[i].num_layers; ++layer) {
      if (!checkpointed[i].contains(layer)) lists[i].kept.push_back(layer);
    }
  }
  return lists;
}

PlanFacts plan_facts(const Plan& plan, const Trace& trace) {
  PlanFacts facts;
  facts.lists = layer_facts(plan, trace);
  facts.held = held_after_forward(trace, plan);
  facts.types.resize(plan.types.size());
  const TraceIndex index(trace);
  const std::vector<OpRange> ranges = index.ranges(plan);
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const int type_index = plan.regions[i].type;
    const RegionType& type = plan.types[type_index];
    const RegionGraph graph = index.graph(ranges[i]);
    RegionSimulation whole_region = simulate_region(graph, type, Schedule::kWholeRegion);
    RegionSimulation on_demand = simulate_region(graph, type, Schedule::kOnDemand);
    facts.recomputed_whole_region += static_cast<std::int64_t>(whole_region.executed.size());
    facts.recomputed_on_demand += static_cast<std::int64_t>(on_demand.executed.size());
    TypeFacts& type_facts = facts.types[type_index];
    type_facts.regions.push_back(static_cast<int>(i));
    if (type_facts.regions.size() > 1) continue;
    type_facts.dead = dead_bytes(type);
    type_facts.on_host = host_bytes_of(stored_storages(graph, type), graph);
    for (const RegionSlot& slot : graph.slots) {
      type_facts.slots.push_back(slot_name(trace, type, ranges[i], slot.pack));
    }
    type_facts.whole_region = std::move(whole_region);
    type_facts.on_demand = std::move(on_demand);
  }
  return facts;
}

}  // namespace rematch
