// Finds the values that a plan moves to the host, as storages of a region. See Note
// [Lifetime of offloaded values].
#pragma once

#include <vector>

#include "policies/plan/plan.h"
#include "policies/predict/region/region.h"
#include "policies/trace/trace.h"

namespace rematch {

// The results and inputs that a region offloads. Both lists hold local storages, without
// duplicates.
struct RegionOffload {
  std::vector<int> results;
  std::vector<int> inputs;
  bool empty() const { return results.empty() && inputs.empty(); }
  bool contains(int storage) const;
  Bytes bytes(const RegionGraph& graph) const;
};

// Returns the storages that a region with this plan offloads. The plan's last region offloads
// nothing, but this function does not know which region is the last.
RegionOffload offloaded_storages(const RegionGraph& graph, const RegionType& type);

// Returns the inputs whose device memory could be freed between the region's forward and its
// backward. Such inputs are results of earlier ops, are not views, and are not written later. The
// caller must check whether something else holds them too.
std::vector<RegionInput> offloadable_inputs(const Trace& trace, const RegionGraph& graph);

}  // namespace rematch
