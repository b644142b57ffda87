// Finds the storages of a region that a plan moves to stores. See Note [Lifetime of stored values].
#pragma once

#include <cstdint>
#include <vector>

#include "policies/plan/plan.h"
#include "policies/predict/region/region.h"
#include "policies/trace/trace.h"

namespace rematch {

// A storage of a region that the plan moves to a store.
struct StoredStorage {
  int storage = 0;  // local index in the region
  Store store = Store::kHost;
  bool is_input = false;
  std::int32_t op = 0;  // local index of the op that makes the storage; only for results
};

// Returns the storages that a region with this plan moves, without duplicates: results in the order
// of their ops, then inputs. The last region of a plan moves nothing, which the caller must handle.
std::vector<StoredStorage> stored_storages(const RegionGraph& graph, const RegionType& type);

// bytes_of() returns the size of the storages, and host_bytes_of() the size of their copies on the
// host.
Bytes bytes_of(const std::vector<StoredStorage>& stored, const RegionGraph& graph);
Bytes host_bytes_of(const std::vector<StoredStorage>& stored, const RegionGraph& graph);

// Returns the inputs that may leave the device between the region's forward and backward. They are
// results of earlier ops, are not views, and are not written later. The caller must check whether
// anything else holds them.
std::vector<RegionInput> movable_inputs(const Trace& trace, const RegionGraph& graph);

}  // namespace rematch
