// A plan made ready for the engine: op names looked up once, regions found by scope path.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "harness/engine/departure_counts.h"
#include "harness/engine/offload/host_store.h"
#include "harness/engine/recompute_differences.h"
#include "harness/engine/record/buffers.h"
#include "harness/engine/record/gathered.h"
#include "harness/engine/record/op_facts.h"
#include "harness/engine/record/record.h"
#include "harness/engine/recording.h"
#include "policies/replay/demand.h"

namespace rematch {

struct PreparedRegionType {
  int index = 0;                    // in Plan::types
  std::vector<const OpFacts*> ops;  // null: this LibTorch has no such op
  std::vector<std::int32_t> ids;    // OpFacts::id of each; -1: no such op
  std::vector<Keep> keep;           // by op
  Bytes kept_bytes;                 // that the plan keeps
  // The layer of each op, as its distance from the region's first layer; -1: in no layer.
  std::vector<int> layer_of_op;
  bool has_several_layers = false;
  std::vector<RegionInput> offload_inputs;
  ReplayExtent extent = ReplayExtent::kLazyClosure;
  bool early_stop = true;
  std::unordered_map<int, const DemandStep*> demand_steps;  // by pack

  std::size_t first_op_of(int layer_distance) const;
};

// A layer of a region, but not its first one.
struct InnerLayer {
  std::size_t region;
  int distance;  // from the region's first layer
};

struct Checkpoint::Prepared {
  Prepared(Plan plan, Schedule schedule, Options options);

  Plan plan;
  Schedule schedule;
  Options options;
  std::vector<PreparedRegionType> types;
  std::unordered_map<std::string, std::size_t> region_by_first_scope;
  std::unordered_map<std::string, InnerLayer> inner_layers;  // by scope
  bool offloads = false;
  mutable HostStore host;
  mutable BufferPool buffers;
  mutable DepartureCounts departures;
  mutable RecomputeDifferences differences;
  mutable GatheredTensors gathered;
};

}  // namespace rematch
