// The gathers of sharded parameters inside blocks, as FSDP's are. See is_parameter_gather() in
// collective.h.
#pragma once

#include <vector>

#include "policies/trace/trace.h"

namespace rematch {

// Those of a block, in order.
std::vector<OpId> parameter_gathers(const Trace& trace, const TracedBlock& block);

// Whether any block has one.
bool blocks_gather_parameters(const Trace& trace);

}  // namespace rematch
