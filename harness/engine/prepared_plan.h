// A plan made ready for the engine: op names looked up once, regions found by scope path.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "harness/engine/offload/host_store.h"
#include "harness/engine/record/buffers.h"
#include "harness/engine/record/op_facts.h"
#include "harness/engine/record/record.h"
#include "harness/engine/recording.h"
#include "policies/replay/demand.h"

namespace rematch {

struct PreparedRegionType {
  std::vector<const OpFacts*> ops;
  std::vector<Keep> keep;  // by op
  std::vector<RegionInput> offload_inputs;
  ReplayExtent extent = ReplayExtent::kLazyClosure;
  bool early_stop = true;
  std::unordered_map<int, const DemandStep*> demand_steps;  // by pack
};

struct Checkpoint::Prepared {
  Prepared(Plan plan, Schedule schedule, OutsideCheck outside_check);

  Plan plan;
  Schedule schedule;
  OutsideCheck outside_check;
  std::vector<PreparedRegionType> types;
  std::unordered_map<std::string, std::size_t> region_by_first_scope;
  bool offloads = false;
  mutable HostStore host;
  mutable BufferPool buffers;
};

}  // namespace rematch
