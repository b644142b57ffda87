// In which order on_demand recomputes a region's saved tensors, so that it never peaks higher than
// whole_region.
//
// Note [Why lazy order is not always lowest]
// A closure run late may hold a kept source that is larger than its result, or an intermediate that
// an early demand shares with it, or need a large temporary when gradients have been born. The
// first two are cured by running it early where that frees more than it holds (sinking). The third
// shows only in simulation. Running the whole closure at the first demand is never higher than
// whole_region, so the lowest of the three is not either.
#pragma once

#include "policies/plan/plan.h"
#include "policies/predict/region/region.h"
#include "policies/predict/region/simulator.h"
#include "policies/trace/trace.h"

namespace rematch {

// Fills `type.demand_steps` and `type.whole_on_demand` for ops [first_op, end_op). They hold for
// every region of the same behaviour (same_behaviour()).
void choose_order(const Trace& trace, OpId first_op, OpId end_op, RegionType& type);
// `least`: no order of the region has a lower RegionSimulation::peak, as far as the caller knows;
// the sooner the order is found. Returns the region as it is simulated in that order.
RegionSimulation choose_order(const RegionGraph& graph, RegionType& type, Bytes least = {});

}  // namespace rematch
