// Combines the plans of several shapes. Steps that run the same ops have the same shape: see Note
// [Shapes of a step] (policies/plan/plan.h).
#pragma once

#include <variant>
#include <vector>

#include "policies/base/rejected.h"
#include "policies/plan/plan.h"
#include "policies/trace/trace.h"

namespace rematch {

// Combines several plans into one. Plan i belongs to trace i and has one shape. The shapes keep
// this order.
//
// Note [Regions added to the plan of a shape] The engine does not know the shape before it has seen
// ops. It may therefore open a region where the running shape's own plan has none. For this reason,
// if any shape has a region at a scope, all shapes that run the scope get a region there. If the
// shape's own plan has no region there, the added region keeps everything that backward needs. If
// its own plan has regions inside such a scope, they become parts of the added region.
//
// Regions of two shapes may begin at the same scope and have the same ops until one of them ends.
// The longer region is then cut into one region per layer.
//
// If several shapes run the same ops in all scopes that have regions, the engine cannot distinguish
// the shapes. All of them then get the plan of the shape that needs the most bytes without
// checkpointing. Some shapes are equal up to a layer that one of them leaves out. Before that
// layer, the regions of these shapes get the treatments of the largest shape.
//
// Merges the hidden effects of the plans.
//
// Returns Rejected if the numbers of plans and traces differ, or if a plan belongs to another trace
// or has several shapes. Also returns Rejected if two shapes would issue different collectives in
// backward, because ranks that run different shapes would then wait for each other forever.
std::variant<Plan, Rejected> combine_shapes(const std::vector<Trace>& traces,
                                            const std::vector<Plan>& plans);

}  // namespace rematch
