// Chooses the order in which on_demand recomputes a region's saved tensors, so that it never peaks
// higher than whole_region.
//
// Note [Why lazy order is not always lowest] The closure of a saved tensor is the set of ops that
// recompute it. Running a closure late can cost memory in three ways:
// - It may hold a kept source that is larger than the closure's result.
// - It may hold an intermediate that an earlier demand shares with it.
// - It may need a large temporary at a time when gradients already exist.
//
// Running a closure early is called sinking. A closure is sunk only if this frees more bytes than
// its result needs. Sinking avoids the first two costs. Only simulation shows the third cost. Three
// orders are therefore simulated: lazy, lazy with sinking, and running the whole closure at the
// first demand. The last order never peaks higher than whole_region, so the best of the three
// orders does not either.
#pragma once

#include "policies/plan/plan.h"
#include "policies/predict/region/region.h"
#include "policies/predict/region/simulator.h"
#include "policies/trace/trace.h"

namespace rematch {

// Fills `type.demand_steps` and `type.whole_on_demand` for ops [first_op, end_op). The result is
// valid for every region with the same behaviour (same_behaviour()).
void choose_order(const Trace& trace, OpId first_op, OpId end_op, RegionType& type);
// `least` is a lower bound, known to the caller, on RegionSimulation::peak over all orders. The
// search ends early when it reaches this bound. Returns the simulation of the region in the chosen
// order.
RegionSimulation choose_order(const RegionGraph& graph, RegionType& type, Bytes least = {});

}  // namespace rematch
