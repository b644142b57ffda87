// Predicted memory of one of several ranks that share parameters, gradients and optimizer state.
#pragma once

#include <vector>

#include "harness/run/variants.h"
#include "policies/predict/optimizer_bytes.h"
#include "policies/trace/trace.h"

namespace rematch {

// Puts the figures of one of `world` ranks (sharding.h says what it holds) in place of those of
// the whole step. They are the simulator's: ranks do not run on meta. `trace` is that of the
// variants' model.
void predict_rank_memory(std::vector<Variant>& variants, const Trace& trace,
                         OptimizerModel optimizer, int world);

}  // namespace rematch
