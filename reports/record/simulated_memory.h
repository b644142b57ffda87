// Converts a simulated step to records of a point: its memory and its executed ops.
#pragma once

#include <vector>

#include "policies/predict/step/counts.h"
#include "policies/predict/step/step.h"
#include "reports/record/point.h"

namespace rematch {

// Returns the memory record of a predicted step, with the fields of a measured step. `boundaries`
// must come from the step's StepDetails.
MemoryRecord memory_of(const StepPrediction& step, const std::vector<StepBoundary>& boundaries,
                       const Trace& trace);
// Fills only the fields that need no boundaries.
MemoryRecord memory_of(const StepPrediction& step, const Trace& trace);

// Returns the predicted ops of one step.
CountsRecord counts_of(const PredictedCounts& counts);

}  // namespace rematch
