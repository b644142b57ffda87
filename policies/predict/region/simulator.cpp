#include "policies/predict/region/simulator.h"

#include "policies/predict/region/region_player.h"

namespace rematch {
RegionSimulation simulate_region(const Trace& trace, OpId first_op, OpId end_op,
                                 const RegionType& type, Schedule schedule) {
  return simulate_region(make_region_graph(trace, {first_op, end_op}), type, schedule);
}

RegionSimulation simulate_region(const RegionGraph& graph, const RegionType& type,
                                 Schedule schedule) {
  return play_region(graph, type, replay_extent(type, schedule));
}

}  // namespace rematch
