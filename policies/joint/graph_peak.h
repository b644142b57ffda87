// The predicted peak of a compiled step. A tensor counts from the node that allocates it to the
// last node that reads it. Without fusion, the prediction is exact for graphs that run op by op.
// With fusion, a value inside a kernel takes no memory, and a kernel may reuse the memory of an
// input that is not read later.
#pragma once

#include <algorithm>

#include "policies/base/bytes.h"
#include "policies/joint/graph_schedule.h"
#include "policies/joint/joint_graph.h"

namespace rematch {

// Bytes of one call of a graph, without parameters, constants and gradients of earlier calls.
struct GraphPeaks {
  Bytes forward;    // the peak of forward
  Bytes held;       // alive from the end of forward on
  Bytes backward;   // the peak of backward
  Bytes returned;   // the part of `held` that stays alive to the end of the step
  Bytes gradients;  // of parameters
  Bytes outside;    // the part of `returned` that backward does not read

  // The peak of a step that calls the graph once.
  Bytes step() const { return std::max(forward, backward); }
};

// Predicts the peaks of one schedule's orders of backward.
class PeakModel {
 public:
  PeakModel(const JointGraph& graph, const GraphSchedule& schedule, Fusion fusion);

  // `backward` is an order of the schedule.
  GraphPeaks peaks(const NodeIds& backward) const;

 private:
  Bytes total(const IdTable<NodeId, bool>& roots) const;

  const JointGraph& graph_;
  Fusion fusion_;
  IdTable<NodeId, bool> constants_;  // placeholders whose memory the step does not free
  IdTable<NodeId, bool> at_end_of_forward_;
  IdTable<NodeId, bool> at_start_of_backward_;
  IdTable<NodeId, bool> at_end_of_backward_;
  GraphPeaks known_;  // without the peak of backward
  Bytes copied_;
};

}  // namespace rematch
