// Combines the plans of several shapes of a step: see Note [Shapes of a step]
// (policies/plan/plan.h).
#pragma once

#include <variant>
#include <vector>

#include "policies/plan/plan.h"
#include "policies/trace/trace.h"

namespace rematch {

// Combines several plans into one. Plan i belongs to trace i and has one shape. The shapes keep
// this order.
//
// Note [What a shape needs beside its own plan]
// The engine does not know the shape before it has seen ops, so it may open a region where the
// running shape has none. Every scope where some shape has a region therefore gets a region in all
// shapes that run the scope. If the shape's own plan has no region there, the added region keeps
// everything that backward needs. If its own plan has regions inside such a scope, they become
// parts of the added region.
//
// Regions of two shapes may begin at the same scope and have the same ops until one of them ends.
// The longer region is then cut into one region per layer.
//
// Shapes whose ops are the same in all these scopes cannot be distinguished. They all get the plan
// of the shape that needs the most bytes without checkpointing. Shapes that differ later, because
// one of them leaves out a layer, cannot be distinguished before. Until then their regions get the
// treatments of the largest of them.
//
// Returns Rejected if the numbers of plans and traces differ, or if a plan belongs to another trace
// or has several shapes. Also returns Rejected if shapes would issue different collectives in
// backward, because ranks that run different shapes would wait for each other forever.
std::variant<Plan, Rejected> combine_shapes(const std::vector<Trace>& traces,
                                            const std::vector<Plan>& plans);

}  // namespace rematch
