// Compares the simulator with the engine, on small models on meta: both must recompute the same
// ops, at the same places among the ops of backward.
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "harness/engine/record/op_facts.h"
#include "harness/measure/memory.h"
#include "harness/measure/op_counter.h"
#include "harness/trace/tracer.h"
#include "harness/training/training.h"
#include "models/preset/preset.h"
#include "policies/catalogue/catalogue.h"
#include "policies/catalogue/resolve.h"
#include "policies/predict/region/order.h"
#include "policies/predict/region/simulator.h"
#include "policies/predict/region/trace_index.h"
#include "tests/support/catch.h"
#include "tests/support/seeds.h"

namespace rematch {
namespace {

constexpr const char* kBackwardOp = "backward op";

// Records recomputed ops by name, and all other ops of backward under one common name.
class SequenceObserver final : public OpObserver {
 public:
  void executed(const c10::OperatorHandle& op, Phase phase, const torch::jit::Stack&) override {
    sequence.push_back(phase == Phase::kRecompute ? facts_of(op).name : kBackwardOp);
  }
  std::vector<std::string> sequence;
};

class BackwardListener final : public StepListener {
 public:
  explicit BackwardListener(OpObserver& observer) : observer_(observer) {}
  void after_forward(const at::Tensor&) override { observing_.emplace(&observer_); }
  void after_backward() override { observing_.reset(); }

 private:
  OpObserver& observer_;
  std::optional<OpObserverGuard> observing_;
};

Plan plan_with_random_saves(const char* policy, const Trace& trace, std::uint32_t seed) {
  Plan plan = std::get<Plan>(resolve(std::get<Policy>(parse_policy(policy)), trace));
  const OpRange range = region_ranges(trace, plan).at(0);
  RegionType& type = plan.types.at(0);
  std::mt19937 dice(seed);
  const std::uint32_t percent = seed % 4 * 20;
  for (std::size_t i = 0; i < type.ops.size(); ++i) {
    const TracedOp& op = trace.ops[range.first + static_cast<int>(i)];
    const bool can_save = !op.is_view && op.writes.empty();
    type.ops[i].treatment =
        can_save && dice() % 100 < percent ? Treatment::kSave : Treatment::kRecompute;
  }
  type.early_stop = seed % 2 == 0;
  choose_order(trace, range.first, range.end, type);
  if (seed % 5 == 4) type.whole_on_demand = true;
  type.by_demand = seed % 7 == 3;
  return plan;
}

std::vector<std::string> predicted_sequence(const Trace& trace, const Plan& plan,
                                            Schedule schedule) {
  std::vector<ExecutedOp> executed;
  const std::vector<OpRange> ranges = region_ranges(trace, plan);
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const RegionType& type = plan.types[static_cast<std::size_t>(plan.regions[i].type)];
    const auto region =
        simulate_region(trace, ranges[i].first, ranges[i].end, type, schedule).executed;
    executed.insert(executed.end(), region.begin(), region.end());
  }
  std::vector<std::string> sequence;
  for (const BackwardEvent& event : trace.backward) {
    if (event.kind == BackwardEvent::Kind::kOp) sequence.push_back(kBackwardOp);
    if (event.kind != BackwardEvent::Kind::kDemand) continue;
    for (const ExecutedOp& op : executed) {
      if (op.demand != event.pack) continue;
      sequence.push_back(trace.ops[op.op].name);
    }
  }
  return sequence;
}

TEST_CASE("the engine and the simulator recompute the same ops at the same places", "[property]") {
  // The order of recompute depends on the bytes that backward allocates, which the trace records.
  install_counting_allocators();
  for (const char* preset : {"llama_small", "wan_small"}) {
    CAPTURE(preset);
    TrainingSettings settings;
    settings.model = std::get<ModelSpec>(make_spec(preset, {{"layers", 2}}));
    settings.device = at::kMeta;
    settings.optimizer = OptimizerKind::kNothing;
    Training training(settings);
    const Batch batch = training.batch(0);
    const Trace trace = record_trace([&] { return training.loss(batch); });
    training.clear_gradients();
    for (std::uint32_t seed = 0; seed < testing::num_seeds(20); ++seed) {
      CAPTURE(seed);
      const Plan plan = plan_with_random_saves(seed < 10 ? "full" : "root", trace, seed);
      for (const Schedule schedule : {Schedule::kWholeRegion, Schedule::kOnDemand}) {
        CAPTURE(schedule);
        SequenceObserver observer;
        BackwardListener listener(observer);
        training.use_plan(plan, schedule);
        training.step(0, listener);
        CHECK(observer.sequence == predicted_sequence(trace, plan, schedule));
      }
    }
  }
}

}  // namespace
}  // namespace rematch
