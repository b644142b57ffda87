// Predicted memory of a step with an optimizer that does not run here, on meta or anywhere else.
#pragma once

#include <vector>

#include "harness/run/variants.h"
#include "policies/predict/step/optimizer_bytes.h"
#include "policies/trace/trace.h"

namespace rematch {

// Puts the step simulator's figures with this optimizer in place of those of the step on meta.
// `trace` is that of the variants' model.
void predict_memory_with(OptimizerModel optimizer, const Trace& trace,
                         std::vector<Variant>& variants);

}  // namespace rematch
