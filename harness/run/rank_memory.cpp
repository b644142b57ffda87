#include "harness/run/rank_memory.h"

#include <utility>

#include "policies/predict/sharding.h"
#include "policies/predict/step.h"
#include "reports/record/simulated_memory.h"

namespace rematch {

void predict_rank_memory(std::vector<Variant>& variants, const Trace& trace,
                         OptimizerModel optimizer, int world) {
  ShardedStep step = shard_step(trace, world);
  StepSimulator simulator(step.trace, optimizer);
  simulator.use_gathered(std::move(step.gathered));
  for (Variant& variant : variants) {
    MemoryRecord memory =
        memory_of(simulator.simulate(variant.plan, variant.identity.schedule), step.trace);
    memory.dead_save = variant.prediction.memory.dead_save;
    variant.prediction.memory = std::move(memory);
  }
}

}  // namespace rematch
