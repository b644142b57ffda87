// The values that a plan moves to the host, by the storages of a region. See Note [When an
// offloaded value is where].
#pragma once

#include <vector>

#include "policies/plan/plan.h"
#include "policies/predict/region/region.h"
#include "policies/trace/trace.h"

namespace rematch {

// Local storages, each once.
struct RegionOffload {
  std::vector<int> results;
  std::vector<int> inputs;
  bool empty() const { return results.empty() && inputs.empty(); }
  bool contains(int storage) const;
  Bytes bytes(const RegionGraph& graph) const;
};

// Storages that a region offloads if another region follows it; the plan's last moves nothing.
RegionOffload offloaded_storages(const RegionGraph& graph, const RegionType& type);

// The inputs whose device memory could go while the region waits for backward: results of earlier
// ops, read as they are, not written to from here on. Whether somebody else holds them as well
// is for the caller to see.
std::vector<RegionInput> offloadable_inputs(const Trace& trace, const RegionGraph& graph);

}  // namespace rematch
