// Places a policy's regions in a trace: which layers it governs and how they become regions.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "policies/plan/plan.h"
#include "policies/plan/policy.h"
#include "policies/predict/region/region.h"
#include "policies/trace/trace.h"

namespace rematch {

// The blocks of one list, in forward order. A looped layer appears as often as it runs.
struct BlockList {
  std::string name;
  std::vector<TracedBlock> blocks;
  int num_layers = 0;
};
std::vector<BlockList> block_lists(const Trace& trace);

struct PlacedRegion {
  PlannedRegion planned;  // its type is not known yet
  ScopeId first_scope;
  OpRange range;
};

// In forward order, disjoint, none empty. Rejected: N or a layer index outside the model's layers,
// a model without layers, scope patterns that match nothing.
std::variant<std::vector<PlacedRegion>, Rejected> place_regions(const Policy& policy,
                                                                const Trace& trace);

// Blocks that gather their sharded parameters, under a policy that does not checkpoint them.
//
// Note [Gathers without checkpointing]
// Autograd holds every gathered parameter that backward reads, so a step that merely gathers block
// by block ends forward with the whole model in memory. FSDP's reshard_after_forward drops the
// gathered parameters of each block and gathers them again in backward. As a plan that is a region
// which keeps everything but the gather; the same plan that torchtitan's SimpleFSDP makes with a
// compiler pass.

// Blocks with a gather of parameters that overlap none of `placed`, as regions in forward order;
// empty if the policy holds gathered parameters.
std::vector<PlacedRegion> blocks_that_only_gather(const Policy& policy, const Trace& trace,
                                                  const std::vector<PlacedRegion>& placed);

// Whether gathered parameters stay in memory although the policy says otherwise: a gather is in a
// block, but outside the policy's regions, which are parts of it.
bool holds_gathers(const Policy& policy, const Trace& trace, const std::vector<OpRange>& regions);

}  // namespace rematch
