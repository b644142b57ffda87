#include "tests/support/meta_engine.h"

#include <utility>

#include "harness/measure/op_counter.h"
#include "harness/run/passes/passes.h"

namespace rematch::testing {

// On meta tensors, counting ops does not disturb the measurement of memory, so one step serves
// both.
EngineFigures run_on_meta(MetaModel& model, const Plan& plan, Schedule schedule) {
  model.training().use_plan(plan, schedule);
  OpCounter counter;
  PassPosition position;
  MemoryRecord memory = memory_pass(model.training(), at::kMeta, /*step=*/0, position, {&counter});
  return {counter.record(1), std::move(memory)};
}

}  // namespace rematch::testing
