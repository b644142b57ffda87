// Moves elementwise ops of a compiled backward graph next to ops with which they share a kernel.
#pragma once

#include "policies/joint/joint_graph.h"

namespace rematch {

// Moves each elementwise op to the position of an earlier elementwise op that reads the same value,
// if it can run there. Inductor computes such ops in one kernel.
NodeIds with_fused_neighbours(const JointGraph& graph, const NodeIds& order);

}  // namespace rematch
