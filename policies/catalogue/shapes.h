// Combines the plans of several shapes of a step: see Note [Shapes of a step]
// (policies/plan/plan.h).
#pragma once

#include <variant>
#include <vector>

#include "policies/plan/plan.h"
#include "policies/trace/trace.h"

namespace rematch {

// Plan i belongs to trace i and has one shape. The shapes of the result have this order.
//
// Note [What a shape needs beside its own plan]
// The engine does not know the shape before it has seen ops. It may open a region where the shape
// that runs has none. So every scope where some shape has a region gets a region in all shapes that
// run the scope. Where the shape's own plan has none, the region keeps all that backward needs.
// Regions of its own plan inside such a scope become parts of the region.
//
// Regions of two shapes may begin at the same scope and have the same ops until one of them ends.
// The longer one is cut into a region for each layer.
//
// Shapes whose ops are the same in all these scopes cannot be told apart. They get one plan: the
// one of the shape that needs the most bytes without checkpointing.
//
// Rejected: another number of plans than of traces; a plan of another trace, or of several shapes;
// shapes that would issue other collectives in backward, where ranks that run different shapes
// would wait for each other forever.
std::variant<Plan, Rejected> combine_shapes(const std::vector<Trace>& traces,
                                            const std::vector<Plan>& plans);

}  // namespace rematch
