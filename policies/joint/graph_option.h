// A plan of one joint graph: what forward saves, in which order backward recomputes, and the peak
// and the time that follow.
#pragma once

#include <chrono>

#include "policies/joint/graph_peak.h"
#include "policies/joint/graph_schedule.h"
#include "policies/joint/joint_graph.h"

namespace rematch {

struct GraphOption {
  NodeIds saved;
  bool by_layer = false;  // the order of backward: see GraphSchedule
  GraphPeaks peaks;
  std::chrono::nanoseconds added{};  // the time of recomputed ops, and of saving
  int num_recomputed = 0;            // ops, without views
};

// Returns the plan in which forward saves the nodes of `offered` that backward reads. Backward uses
// the order with the lower peak.
GraphOption option_of(const JointGraph& graph, const NodeIds& offered, Fusion fusion);

}  // namespace rematch
