// A plan that is prepared for the engine: op names are looked up, and regions are indexed by scope.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "harness/engine/departure_counts.h"
#include "harness/engine/recompute_differences.h"
#include "harness/engine/record/buffers.h"
#include "harness/engine/record/gathered.h"
#include "harness/engine/record/op_facts.h"
#include "harness/engine/record/record.h"
#include "harness/engine/recording.h"
#include "harness/engine/stores/stores.h"
#include "policies/replay/demand.h"

namespace rematch {

struct PreparedRegionType {
  const RegionType* planned = nullptr;
  int shape = 0;           // 0 for the plan's own shape; i for other_shapes[i - 1]
  int index = 0;           // index among the region types of the shape
  std::size_t number = 0;  // index among the region types of all shapes
  // The lists below have one entry for each planned op that forward runs.
  std::vector<const PlannedOp*> planned_ops;
  // Null for an op that is not registered yet. A library may register its ops when a layer first
  // runs.
  std::vector<const OpFacts*> ops;
  std::vector<std::int32_t> ids;  // OpFacts::id
  std::vector<Keep> keep;
  Bytes kept_bytes;  // bytes of results that the plan keeps
  // The distance of each op's layer from the region's first layer. -1 for an op outside of layers.
  std::vector<int> layer_of_op;
  bool has_several_layers = false;
  std::vector<int> skipped;  // indices of the ops with PlannedOp::skipped
  ReplayExtent extent = ReplayExtent::kLazyClosure;
  bool early_stop = true;
  std::unordered_map<int, const DemandStep*> demand_steps;  // the key is DemandStep::pack

  std::size_t first_op_of(int layer_distance) const;
};

// A region of one of the plan's shapes, identified by its index in Prepared::regions.
struct PreparedRegion {
  const PlannedRegion* planned;
  const PreparedRegionType* type;
  std::size_t next;  // the next region of the shape; the last region points to the first
  bool is_first;     // whether the region is the first of its shape
  bool is_last;
};

// A layer inside a region. The region's first layer is not an InnerLayer.
struct InnerLayer {
  std::size_t region;
  int distance;  // distance from the region's first layer
};

struct Checkpoint::Prepared {
  Prepared(Plan plan, Schedule schedule, Options options);

  Plan plan;
  Schedule schedule;
  Options options;
  std::vector<PreparedRegionType> types;
  std::vector<PreparedRegion> regions;  // grouped by shape, each in forward order
  std::vector<std::size_t>
      first_regions;  // the first region of each distinct shape that has regions
  // Regions by their first scope, in the order of `regions`.
  std::unordered_map<std::string, std::vector<std::size_t>> regions_at;
  std::unordered_map<std::string, std::vector<InnerLayer>> inner_layers;  // inner layers by scope
  bool moves_values = false;  // whether a region moves values to a store
  Stores stores;
  mutable BufferPool buffers;
  mutable DepartureCounts departures;
  mutable RecomputeDifferences differences;
  mutable GatheredTensors gathered;

  bool has_several_shapes() const { return first_regions.size() > 1; }
  // The distance from the region's first layer to the layer `scope`. Absent if the region does not
  // contain this layer, or begins with it.
  std::optional<int> inner_layer(const std::string& scope, std::size_t region) const;

 private:
  void add_shape(const ShapePlan& shape, int index);
  bool is_known(const ShapePlan& shape) const;
  void add_inner_layers(std::size_t region);
};

}  // namespace rematch
