// A simulated step in the words of a point: its memory and its executed ops.
#pragma once

#include "policies/predict/step/counts.h"
#include "policies/predict/step/step.h"
#include "reports/record/point.h"

namespace rematch {

// The fields of a measured step, filled with what is predicted for it.
MemoryRecord memory_of(const StepPrediction& step, const Trace& trace);

// The predicted ops of one step.
CountsRecord counts_of(const PredictedCounts& counts);

}  // namespace rematch
