// Blocks that gather their sharded parameters, under a policy that does not checkpoint them.
//
// Note [Gathers without checkpointing]
// Autograd holds every gathered parameter that backward reads, so a step that merely gathers block
// by block ends forward with the whole model in memory. FSDP's reshard_after_forward drops the
// gathered parameters of each block and gathers them again in backward. As a plan that is a region
// which keeps everything but the gather; the same plan that torchtitan's SimpleFSDP makes with a
// compiler pass.
#pragma once

#include <vector>

#include "policies/catalogue/place_regions.h"
#include "policies/plan/policy.h"

namespace rematch {

// The policy of such a region: all that is of use is kept but the gather and its views.
Policy gather_again();

// Blocks with a gather of parameters that overlap none of `placed`, as regions in forward order;
// empty if the policy holds gathered parameters.
std::vector<PlacedRegion> blocks_that_only_gather(const Policy& policy, const Trace& trace,
                                                  const std::vector<PlacedRegion>& placed);

// Whether gathered parameters stay in memory although the policy says otherwise: a gather is in a
// block, but outside the policy's regions, which are parts of it.
bool holds_gathers(const Policy& policy, const Trace& trace, const std::vector<OpRange>& regions);

}  // namespace rematch
