#include "tests/support/hazards/trial.h"

#include <ATen/Parallel.h>
#include <c10/util/Exception.h>

#include "harness/measure/memory.h"

namespace rematch::testing::hazards {

void prepare_process() {
  install_counting_allocators();
  at::set_num_threads(1);
}

Trial try_to_train(const Hazard& hazard, const Checkpoint* checkpoint, Backward backward,
                   int steps) {
  Trial trial;
  try {
    trial.facts = train(hazard, checkpoint, backward, steps);
  } catch (const c10::Error& error) {
    trial.error = error.what_without_backtrace();
  } catch (const std::exception& error) {
    trial.error = error.what();
  }
  return trial;
}

std::string verdict_on(const Trial& plain, const Trial& engine) {
  if (plain.facts.has_value() != engine.facts.has_value()) {
    return plain.facts.has_value() ? "throws: " + engine.error
                                   : "runs, and without the engine it throws: " + plain.error;
  }
  return plain.facts.has_value() ? first_difference(*plain.facts, *engine.facts) : "";
}

}  // namespace rematch::testing::hazards
