// Compares the simulated bytes of every stage of a pipeline with the engine's, at every op boundary
// of a whole step on meta tensors.
#include <map>
#include <string>
#include <vector>

#include "harness/engine/interception.h"
#include "harness/measure/memory.h"
#include "harness/measure/step_place.h"
#include "harness/run/prediction/prediction.h"
#include "harness/training/training.h"
#include "models/preset/parallel.h"
#include "models/preset/preset.h"
#include "policies/catalogue/catalogue.h"
#include "policies/catalogue/resolve.h"
#include "policies/predict/pipeline/schedule.h"
#include "policies/predict/step/step.h"
#include "tests/support/catch.h"
#include "tests/support/random_plan.h"
#include "tests/support/seeds.h"

namespace rematch {
namespace {

using Boundaries = std::vector<std::pair<Phase, std::int64_t>>;

// Notes the bytes after every op. Replaces the optimizer's boundaries by the highest of them.
class SamplingObserver final : public OpObserver {
 public:
  void executed(const c10::OperatorHandle&, Phase phase, const torch::jit::Stack&) override {
    const Phase effective = PhaseGuard::effective(phase);
    const std::int64_t bytes = current_meta_memory().total.count;
    if (effective == Phase::kOptimizer && boundaries.back().first == effective) {
      boundaries.back().second = std::max(boundaries.back().second, bytes);
    } else {
      boundaries.emplace_back(effective, bytes);
    }
  }
  Boundaries boundaries;
};

// Drops the ops that make batches.
class ForwardStart final : public StepListener {
 public:
  explicit ForwardStart(SamplingObserver& observer) : observer_(observer) {}
  Batch batch(const std::function<Batch()>& make) override {
    const std::size_t before = observer_.boundaries.size();
    Batch made = make();
    observer_.boundaries.resize(before);
    return made;
  }

 private:
  SamplingObserver& observer_;
};

Boundaries engine_boundaries(const ModelSpec& spec, const Plan& plan, Schedule schedule) {
  TrainingSettings settings;
  settings.model = spec;
  settings.device = at::kMeta;
  Training training(settings);
  training.optimizer().prepare();
  training.use_plan(plan, schedule);
  SamplingObserver observer;
  const OpObserverGuard observe(&observer);
  ForwardStart listener(observer);
  training.step(0, listener);
  return std::move(observer.boundaries);
}

// The simulated boundaries of the passes of one kind, and the number of other micro-batches that
// they count.
struct SimulatedPass {
  Boundaries boundaries;
  std::int64_t others = 0;
};

// Splits the simulated boundaries into passes. A step has at most four different ones.
std::vector<SimulatedPass> simulated_passes(const std::vector<StepBoundary>& all,
                                            const InFlight& most) {
  std::vector<std::int64_t> others;
  for (const auto& number :
       {most.first_forward, most.first_backward, most.later_forward, most.later_backward}) {
    if (number) others.push_back(*number);
  }
  std::vector<SimulatedPass> passes;
  std::optional<bool> was_forward;
  for (const StepBoundary& boundary : all) {
    if (boundary.phase == Phase::kOptimizer) continue;
    const bool is_forward = boundary.phase == Phase::kForward;
    const bool begins = !was_forward || *was_forward != is_forward;
    if (begins) passes.push_back({{}, others.at(passes.size())});
    was_forward = is_forward;
    passes.back().boundaries.emplace_back(boundary.phase, boundary.holders.total().count);
  }
  // Without a later forward, the two backward passes follow each other. They have equally many
  // boundaries.
  if (most.later_backward && !most.later_forward) {
    const Boundaries both = passes.at(1).boundaries;
    const auto half = both.begin() + static_cast<std::ptrdiff_t>(both.size() / 2);
    passes[1].boundaries = Boundaries(both.begin(), half);
    passes.push_back({Boundaries(half, both.end()), *most.later_backward});
  }
  return passes;
}

// Composes the whole step from the simulated passes, in the schedule's order.
Boundaries composed_step(const Trace& trace, const Plan& plan, Schedule schedule) {
  StepSimulator simulator(trace);
  StepDetails details;
  simulator.simulate(plan, schedule, &details);
  const std::int64_t held = simulator.held_in_flight(plan, schedule).count;
  const PipelineShape shape = pipeline_shape(trace.dimensions);
  const InFlight most = in_flight(shape, trace.stage->index);
  const std::vector<SimulatedPass> passes = simulated_passes(details.boundaries, most);
  Boundaries step;
  std::int64_t others = 0;
  bool has_gradients = false;
  for (const StagePass& pass : stage_passes(shape, trace.stage->index)) {
    const bool is_forward = pass.kind == StagePass::Kind::kForward;
    if (!is_forward) --others;
    std::size_t kind = is_forward ? 0 : 1;
    if (has_gradients) kind = is_forward || !most.later_forward ? 2 : 3;
    const SimulatedPass& of_kind = passes.at(kind);
    for (const auto& [phase, bytes] : of_kind.boundaries) {
      step.emplace_back(phase, bytes - (of_kind.others - others) * held);
    }
    if (is_forward) ++others;
    if (!is_forward) has_gradients = true;
  }
  const StepBoundary& last = details.boundaries.back();
  if (last.phase == Phase::kOptimizer) step.emplace_back(last.phase, last.holders.total().count);
  return step;
}

std::string first_difference(const Boundaries& engine, const Boundaries& simulated) {
  for (std::size_t index = 0; index < std::max(engine.size(), simulated.size()); ++index) {
    if (index >= engine.size()) return "the engine ended at " + std::to_string(index);
    if (index >= simulated.size()) return "the simulator ended at " + std::to_string(index);
    if (engine[index] == simulated[index]) continue;
    return "boundary " + std::to_string(index) + " of " + std::to_string(engine.size()) +
           ": engine " + std::string(to_string(engine[index].first)) + " " +
           std::to_string(engine[index].second) + ", simulator " +
           std::string(to_string(simulated[index].first)) + " " +
           std::to_string(simulated[index].second);
  }
  return "";
}

std::int64_t highest(const Boundaries& boundaries) {
  std::int64_t most = 0;
  for (const auto& [phase, bytes] : boundaries) most = std::max(most, bytes);
  return most;
}

struct Case {
  const char* preset;
  const char* layout;
  std::map<std::string, std::int64_t> dimensions;
  const char* dtype = "float32";
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {"llama_small", "pp=2,micro=4", {}},
      {"llama_small", "pp=4,micro=8", {}, "bfloat16"},
      {"llama_small", "pp=4,micro=4", {}},
      {"llama_small", "pp=4,micro=2", {}},
      {"llama_small", "pp=2", {}},
      {"llama_small", "pp=3,micro=5", {{"fused_ops", 1}}, "bfloat16"},
      {"llama_small",
       "pp=3,micro=6,first_layers=1,last_layers=2",
       {{"float32_gradients", 1}},
       "bfloat16"},
      {"llama_small", "tp=2,sp,fsdp=2,pp=2,micro=3", {}},
      {"llama_small", "ulysses=2,pp=2,micro=3", {{"adapter_rank", 4}}},
      {"llama_small", "cp=2,pp=2,micro=3", {}},
      {"moe_small", "ep=2,pp=2,micro=3", {}},
      {"deepseek_small", "pp=2,micro=3", {{"dropout_percent", 10}}}};
  return all;
}

ModelSpec spec_of(const Case& which, std::int64_t stage) {
  auto dimensions = std::get<std::map<std::string, std::int64_t>>(parse_layout(which.layout));
  dimensions.insert(which.dimensions.begin(), which.dimensions.end());
  ModelSpec spec = std::get<ModelSpec>(make_spec(which.preset, dimensions, which.dtype));
  spec.rank = static_cast<int>(stage * world_size(spec) / num_stages(spec.dimensions));
  return spec;
}

void check(const ModelSpec& spec, const Trace& trace, const Plan& plan, Schedule schedule) {
  CAPTURE(to_string(schedule));
  const Boundaries engine = engine_boundaries(spec, plan, schedule);
  CHECK(first_difference(engine, composed_step(trace, plan, schedule)) == "");
  CHECK(StepSimulator(trace).simulate(plan, schedule).peak_bytes().count == highest(engine));
}

TEST_CASE("every stage's predicted bytes equal the engine's at every op boundary") {
  install_counting_allocators();
  for (const Case& which : cases()) {
    const std::int64_t num = num_stages(spec_of(which, 0).dimensions);
    for (std::int64_t stage = 0; stage < num; ++stage) {
      CAPTURE(which.preset, which.layout, stage);
      const ModelSpec spec = spec_of(which, stage);
      const Trace trace = MetaModel(spec, OptimizerKind::kAdamW, "", 0).trace();
      REQUIRE(trace.stage.has_value());
      for (const char* policy : {"none", "full", "attn_only", "nth_first(2)", "root"}) {
        CAPTURE(policy);
        const auto resolved =
            resolve(std::get<Policy>(parse_policy(policy)), trace, NoEffect::kAllow);
        // nth_first(2) does not fit a stage of one block.
        if (!std::holds_alternative<Plan>(resolved)) continue;
        const Plan& plan = std::get<Plan>(resolved);
        for (const Schedule schedule : {Schedule::kWholeRegion, Schedule::kOnDemand}) {
          check(spec, trace, plan, schedule);
        }
      }
      for (std::uint32_t seed = 0; seed < testing::num_seeds(2); ++seed) {
        CAPTURE(seed);
        check(spec, trace, testing::random_plan(trace, seed), Schedule::kOnDemand);
      }
    }
  }
}

TEST_CASE("equal stages have one trace, and other stages have traces of their own") {
  install_counting_allocators();
  std::vector<std::string> hashes;
  for (std::int64_t stage = 0; stage < 4; ++stage) {
    const ModelSpec spec = spec_of({"llama_small", "pp=4,micro=8", {}}, stage);
    hashes.push_back(trace_sha256(MetaModel(spec, OptimizerKind::kAdamW, "", 0).trace()));
  }
  CHECK(hashes[1] == hashes[2]);
  CHECK(hashes[0] != hashes[1]);
  CHECK(hashes[2] != hashes[3]);
}

}  // namespace
}  // namespace rematch
