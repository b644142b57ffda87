// Finds the values that a plan moves to the host, as storages of a region. See Note
// [Lifetime of offloaded values].
#pragma once

#include <vector>

#include "policies/plan/plan.h"
#include "policies/predict/region/region.h"
#include "policies/trace/trace.h"

namespace rematch {

// Local storages, without duplicates.
struct RegionOffload {
  std::vector<int> results;
  std::vector<int> inputs;
  bool empty() const { return results.empty() && inputs.empty(); }
  bool contains(int storage) const;
  Bytes bytes(const RegionGraph& graph) const;
};

// Returns the storages that a region offloads if another region follows it. The plan's last region
// offloads nothing.
RegionOffload offloaded_storages(const RegionGraph& graph, const RegionType& type);

// Returns the inputs whose device memory could be freed while the region waits for backward. They
// are results of earlier ops, not views, and are not written from here on. The caller must check
// whether something else holds them too.
std::vector<RegionInput> offloadable_inputs(const Trace& trace, const RegionGraph& graph);

}  // namespace rematch
