// The order in which a compiled step runs the nodes of its joint graph, if forward saves certain
// values.
//
// A recomputed op runs as late as its first use allows, or together with the other recomputed ops
// of its layer. Which of the two orders has the lower peak depends on the saved values.
#pragma once

#include <cstdint>
#include <optional>

#include "policies/joint/joint_graph.h"

namespace rematch {

// Whether the backend computes several elementwise ops in one kernel.
enum class Fusion : std::uint8_t { kNone, kElementwise };

struct GraphSchedule {
  NodeIds forward;     // the order of nodes, including nodes that unpack results
  NodeIds saved;       // what forward passes to backward, including inputs
  NodeIds recomputed;  // the ops that run in both graphs
  // Orders of backward. In the first, each op is recomputed at its first use. In the second, a
  // layer is recomputed as a whole at the first use of one of its values. Absent: it is the same.
  NodeIds by_first_use;
  std::optional<NodeIds> by_layer;
};

// Returns the schedule in which forward saves the nodes of `offered` that backward reads.
GraphSchedule schedule_of(const JointGraph& graph, const NodeIds& offered, Fusion fusion);

// Returns the nodes of backward in execution order. Each node runs as late as its first use allows.
// Leaves out the nodes in `available`.
NodeIds demand_order(const JointGraph& graph, const NodeIds& available);

}  // namespace rematch
