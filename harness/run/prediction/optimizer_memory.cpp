#include "harness/run/prediction/optimizer_memory.h"

#include <utility>

#include "policies/predict/step/step.h"
#include "reports/record/simulated_memory.h"

namespace rematch {

void predict_memory_with(OptimizerModel optimizer, const Trace& trace,
                         std::vector<Variant>& variants) {
  StepSimulator simulator(trace, optimizer);
  for (Variant& variant : variants) {
    MemoryRecord memory =
        memory_of(simulator.simulate(variant.plan, variant.identity.schedule), trace);
    memory.dead_save = variant.prediction.memory.dead_save;
    variant.prediction.memory = std::move(memory);
  }
}

}  // namespace rematch
