// A plan made ready for the engine: op names looked up once, regions found by scope path.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "harness/engine/departure_counts.h"
#include "harness/engine/offload/host_store.h"
#include "harness/engine/record/buffers.h"
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
  // Layers by their distance from the region's first. Empty: the region is no run of layers.
  std::vector<int> layer_of_op;                  // -1: of none
  std::map<int, std::size_t> first_op_of_layer;  // but of the first
  std::vector<RegionInput> offload_inputs;
  ReplayExtent extent = ReplayExtent::kLazyClosure;
  bool early_stop = true;
  std::unordered_map<int, const DemandStep*> demand_steps;  // by pack
};

// A layer that lies behind the first of a region.
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
};

}  // namespace rematch
