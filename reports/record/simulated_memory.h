// A simulated step in the words of a point: what a prediction from a trace says of memory.
#pragma once

#include "policies/predict/step.h"
#include "reports/record/point.h"

namespace rematch {

// The fields of a measured step, filled with what is predicted for it.
MemoryRecord memory_of(const StepPrediction& step, const Trace& trace);

}  // namespace rematch
