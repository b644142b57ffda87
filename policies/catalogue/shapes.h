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
// Note [Regions added to the plan of a shape] When the engine opens a region, it does not know yet
// which shape is running. So if one shape has a region at a scope, every shape that runs the scope
// gets a region there. An added region keeps everything that backward needs. If the shape's own
// plan has regions inside the scope, they become parts of the added region.
//
// Regions of two shapes may begin at the same scope and have the same ops until the shorter region
// ends. The longer region is then cut into one region per layer.
//
// If several shapes run the same ops in all scopes that have regions, the engine cannot distinguish
// them. All get the plan of the shape that needs the most bytes without checkpointing. If two
// shapes are equal up to a layer that only one of them has, the regions before that layer get the
// treatments of the larger shape.
//
// Merges the hidden effects of the plans.
//
// Returns Rejected if the numbers of plans and traces differ, or if a plan belongs to another trace
// or has several shapes. Also returns Rejected if two shapes would issue different collectives in
// backward, because ranks that run different shapes would then wait for each other forever.
std::variant<Plan, Rejected> combine_shapes(const std::vector<Trace>& traces,
                                            const std::vector<Plan>& plans);

}  // namespace rematch
