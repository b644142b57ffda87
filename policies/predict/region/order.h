// Chooses the order in which on_demand recomputes a region's saved tensors, so that it never peaks
// higher than whole_region.
//
// Note [Why lazy order is not always lowest] The closure of a saved tensor is the set of ops that
// recompute it. Running a closure late can cost memory in three ways:
// - A kept value that the closure reads stays in memory, and may be larger than the result.
// - An intermediate that an earlier demand computed stays in memory until the closure reads it.
// - A large temporary of the closure is allocated when gradients already exist.
//
// Running a closure early is called sinking. A closure is sunk only if this frees more bytes than
// its result needs. Sinking avoids the first two costs, but only a simulation shows the third.
// Three orders are therefore simulated: lazy, lazy with sinking, and recomputing everything at the
// first demand. The third order never peaks higher than whole_region, so neither does the best of
// the three.
#pragma once

#include "policies/plan/plan.h"
#include "policies/predict/region/region.h"
#include "policies/predict/region/simulator.h"
#include "policies/trace/trace.h"

namespace rematch {

// Fills `type.demand_steps` and `type.whole_on_demand` for the region of ops [first_op, end_op).
// The result is also valid for all regions with the same behaviour: see same_behaviour().
void choose_order(const Trace& trace, OpId first_op, OpId end_op, RegionType& type);
// Returns the simulation of the region in the chosen order. `least` must be a lower bound on the
// peak of every order. The search ends when it finds an order with this peak.
RegionSimulation choose_order(const RegionGraph& graph, RegionType& type, Bytes least = {});

}  // namespace rematch
