#include "policies/joint/graph_option.h"

#include <utility>

namespace rematch {

GraphOption option_of(const JointGraph& graph, const NodeIds& offered, Fusion fusion) {
  GraphSchedule schedule = schedule_of(graph, offered, fusion);
  const PeakModel model(graph, schedule, fusion);
  GraphOption option;
  option.peaks = model.peaks(schedule.by_first_use);
  if (schedule.by_layer) {
    const GraphPeaks by_layer = model.peaks(*schedule.by_layer);
    option.by_layer = by_layer.step() < option.peaks.step();
    if (option.by_layer) option.peaks = by_layer;
  }
  for (const NodeId op : schedule.recomputed) {
    option.added += graph.nodes[op].time;
    option.num_recomputed += graph.nodes[op].is_view ? 0 : 1;
  }
  for (const NodeId id : schedule.saved) option.added += graph.nodes[id].saving;
  option.saved = std::move(schedule.saved);
  return option;
}

}  // namespace rematch
