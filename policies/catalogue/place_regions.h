// Places a policy's regions in a trace: decides which layers the policy governs, and how these
// layers become regions.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "policies/base/rejected.h"
#include "policies/plan/plan.h"
#include "policies/plan/policy.h"
#include "policies/predict/region/region.h"
#include "policies/trace/trace.h"

namespace rematch {

// The blocks of one block list in forward order. A layer that runs several times appears once for
// each run.
struct BlockList {
  std::string name;
  std::vector<TracedBlock> blocks;
  int num_layers = 0;
};
std::vector<BlockList> block_lists(const Trace& trace);

struct PlacedRegion {
  PlannedRegion planned;  // the region's type is not set yet
  ScopeId first_scope;
  OpRange range;
};

// Returns disjoint regions in forward order, none of them empty. Returns Rejected if N or a layer
// index is outside the model's layers, if the model has no layers, or if no scope matches the
// patterns.
std::variant<std::vector<PlacedRegion>, Rejected> place_regions(const Policy& policy,
                                                                const Trace& trace);

// Note [Gathers without checkpointing]
// Autograd holds every gathered parameter that backward reads. A step that gathers block by block
// therefore ends forward with the whole model in memory. FSDP's reshard_after_forward drops the
// gathered parameters of each block and gathers them again in backward. In a plan this is a region
// that keeps everything except the gather. torchtitan's SimpleFSDP makes the same plan with a
// compiler pass.

// Returns the blocks that gather parameters and overlap none of `placed`, as regions in forward
// order. Returns an empty list if the policy keeps gathered parameters.
std::vector<PlacedRegion> blocks_that_only_gather(const Policy& policy, const Trace& trace,
                                                  const std::vector<PlacedRegion>& placed);

// Returns whether gathered parameters stay in memory although the policy drops them. They do if a
// region of the policy contains only a part of a block, and the block's gather runs outside the
// region.
bool holds_gathers(const Policy& policy, const Trace& trace, const std::vector<OpRange>& regions);

}  // namespace rematch
