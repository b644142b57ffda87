// The engine itself on tensors without data. Slower than the step simulator, and independent of it,
// so tests use it as the simulator's oracle.
#pragma once

#include "harness/run/prediction/prediction.h"
#include "policies/plan/plan.h"
#include "reports/record/point.h"

namespace rematch::testing {

struct EngineFigures {
  CountsRecord counts;  // counts of one step
  MemoryRecord memory;
};

// Runs a step of the model under the plan.
EngineFigures run_on_meta(MetaModel& model, const Plan& plan, Schedule schedule);

}  // namespace rematch::testing
