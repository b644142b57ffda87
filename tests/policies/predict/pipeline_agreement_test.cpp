// Compares the simulated bytes of every rank of a pipeline with the engine's, at every op boundary
// of a whole step on meta tensors. The engine has no weight passes of ZB-H1. There, the test keeps
// the operands of waiting matmuls alive, and leaves out what the matmuls make.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/engine/interception.h"
#include "harness/engine/recording.h"
#include "harness/measure/memory.h"
#include "harness/measure/step_place.h"
#include "harness/run/prediction/prediction.h"
#include "harness/trace/backward_as_with_data.h"
#include "harness/training/stage.h"
#include "harness/training/training.h"
#include "models/preset/parallel.h"
#include "models/preset/preset.h"
#include "policies/catalogue/catalogue.h"
#include "policies/catalogue/resolve.h"
#include "policies/predict/pipeline/rank_holds.h"
#include "policies/predict/pipeline/schedule.h"
#include "policies/predict/pipeline/split_backward.h"
#include "policies/predict/step/step.h"
#include "tests/support/catch.h"
#include "tests/support/random_plan.h"
#include "tests/support/seeds.h"

namespace rematch {
namespace {

using Boundaries = std::vector<std::pair<Phase, std::int64_t>>;

// Bytes after every op of one pass.
struct PassBytes {
  StagePass pass;
  Boundaries boundaries;
};

// Notes the bytes after every op. In backward passes of ZB-H1, keeps the operands of the matmuls
// whose gradients wait, and leaves out what belongs to the weight pass.
class SamplingObserver final : public OpObserver {
 public:
  void begin(const StagePass& pass, const std::vector<WeightGradient>* waiting, const Trace& trace,
             bool is_first) {
    passes.push_back({pass, {}});
    waiting_ = waiting;
    is_first_ = is_first;
    events_of_ops_.clear();
    for (std::size_t event = 0; event < trace.backward.size(); ++event) {
      if (trace.backward[event].kind == BackwardEvent::Kind::kOp) {
        events_of_ops_.push_back(static_cast<std::int32_t>(event));
      }
    }
    num_ops_ = 0;
  }

  void about_to_run(const c10::OperatorHandle& op, Phase phase,
                    const torch::jit::Stack& stack) override {
    if (waiting_ == nullptr || PhaseGuard::effective(phase) != Phase::kBackward) return;
    const std::int32_t event = events_of_ops_.at(num_ops_);
    for (const WeightGradient& weight : *waiting_) {
      if (weight.matmul != event) continue;
      for (std::size_t index = stack.size() - op.schema().arguments().size(); index < stack.size();
           ++index) {
        if (stack[index].isTensor()) kept.push_back(stack[index].toTensor().storage());
      }
    }
  }

  void executed(const c10::OperatorHandle&, Phase phase, const torch::jit::Stack&) override {
    const Phase effective = PhaseGuard::effective(phase);
    std::int64_t bytes = current_meta_memory().total.count;
    if (waiting_ != nullptr && effective == Phase::kBackward) {
      const std::int32_t event = events_of_ops_.at(num_ops_++);
      for (const WeightGradient& weight : *waiting_) {
        const bool is_of_weights =
            event == weight.matmul || (event >= weight.first_after && event <= weight.stored);
        if (is_of_weights) return;
        if (event > weight.matmul && event < weight.stored) bytes -= weight.result.count;
        if (event > weight.stored && is_first_) bytes -= weight.gradient.count;
      }
    } else if (waiting_ != nullptr && is_first_) {
      // Recompute between the ops of the first backward finds stored weight gradients.
      const std::int32_t before = num_ops_ == 0 ? -1 : events_of_ops_.at(num_ops_ - 1);
      for (const WeightGradient& weight : *waiting_) {
        if (before >= weight.stored) bytes -= weight.gradient.count;
      }
    }
    passes.back().boundaries.emplace_back(effective, bytes);
  }

  std::vector<PassBytes> passes;
  std::vector<c10::Storage> kept;  // by the running backward pass

 private:
  const std::vector<WeightGradient>* waiting_ = nullptr;
  bool is_first_ = false;
  std::vector<std::int32_t> events_of_ops_;
  std::size_t num_ops_ = 0;
};

// One stage, and the micro-batches that it holds.
struct EngineStage {
  struct MicroBatch {
    std::int64_t number = 0;
    Batch batch;
    at::Tensor input;
    at::Tensor loss;
    std::optional<StageOutput> output;
  };

  EngineStage(const ModelSpec& spec, const Plan& plan, Schedule schedule)
      : training(settings_of(spec)) {
    training.optimizer().prepare();
    if (!plan.regions.empty()) checkpoint.emplace(plan, schedule);
  }

  static TrainingSettings settings_of(const ModelSpec& spec) {
    TrainingSettings settings;
    settings.model = spec;
    settings.device = at::kMeta;
    return settings;
  }

  Training training;
  std::optional<Checkpoint> checkpoint;
  std::deque<MicroBatch> in_flight;
  std::deque<std::vector<c10::Storage>> for_weights;
  bool has_gradients = false;
};

// Runs one step of one rank on meta tensors, with the passes in the schedule's order.
class EngineRank {
 public:
  EngineRank(const std::vector<ModelSpec>& specs, const std::vector<Trace>& traces,
             const std::vector<Plan>& plans, Schedule schedule)
      : shape_(pipeline_shape(specs.front().dimensions)), traces_(traces) {
    for (std::size_t stage = 0; stage < specs.size(); ++stage) {
      stages_.push_back(std::make_unique<EngineStage>(specs[stage], plans[stage], schedule));
      waiting_.push_back(weight_gradients(traces[stage]));
    }
  }

  std::vector<PassBytes> run() {
    const OpObserverGuard observe(&observer_);
    const std::int64_t rank = traces_.front().stage->index % shape_.num_ranks;
    for (const StagePass& pass : rank_passes(shape_, rank)) {
      const auto position = static_cast<std::size_t>(pass.stage / shape_.num_ranks);
      EngineStage& stage = *stages_[position];
      if (pass.kind == StagePass::Kind::kForward) forward(stage, pass, position);
      if (pass.kind == StagePass::Kind::kBackward) backward(stage, pass, position);
      if (pass.kind == StagePass::Kind::kWeights) stage.for_weights.pop_front();
    }
    // An undefined stage stands for the optimizer.
    observer_.begin({StagePass::Kind::kForward, 0, -1}, nullptr, traces_.front(), false);
    const PhaseGuard phase(Phase::kOptimizer);
    for (const auto& stage : stages_) {
      stage->training.finish_gradients();
      stage->training.optimizer().step();
    }
    return std::move(observer_.passes);
  }

 private:
  void forward(EngineStage& stage, const StagePass& pass, std::size_t position) {
    EngineStage::MicroBatch made{pass.micro_batch, {}, {}, {}, {}};
    observer_.begin(pass, nullptr, traces_[position], false);
    made.batch = stage.training.batch(pass.micro_batch);
    observer_.passes.back().boundaries.clear();
    made.input = stage.training.receive_input(pass.micro_batch);
    std::optional<Recording> recording;
    if (stage.checkpoint) recording.emplace(*stage.checkpoint);
    at::Tensor output = stage.training.run_stage(made.batch, made.input);
    if (recording) recording->finish();
    if (stage.training.stage().is_last()) {
      made.loss = std::move(output);
    } else {
      made.output.emplace(output);
    }
    output.reset();
    stage.in_flight.push_back(std::move(made));
  }

  void backward(EngineStage& stage, const StagePass& pass, std::size_t position) {
    const std::vector<WeightGradient>* waiting =
        shape_.splits_backward ? &waiting_[position] : nullptr;
    observer_.begin(pass, waiting, traces_[position], !stage.has_gradients);
    EngineStage::MicroBatch& running = stage.in_flight.front();
    if (running.output) {
      stage.training.backward(*running.output, running.number);
    } else {
      const PhaseGuard phase(Phase::kBackward);
      BackwardAsWithData as_with_data;
      const OpModeGuard guard(&as_with_data);
      running.loss.backward();
    }
    stage.in_flight.pop_front();
    stage.has_gradients = true;
    stage.for_weights.push_back(std::move(observer_.kept));
    observer_.kept.clear();
  }

  PipelineShape shape_;
  const std::vector<Trace>& traces_;
  std::vector<std::vector<WeightGradient>> waiting_;
  std::vector<std::unique_ptr<EngineStage>> stages_;
  SamplingObserver observer_;
};

// The simulated boundaries of a stage's passes, without what anything else holds.
struct SimulatedStage {
  // `simulator` is of the stage's trace.
  SimulatedStage(StepSimulator& simulator, const Plan& plan, Schedule schedule)
      : holds(simulator.holds(plan, schedule)) {
    const HeldDuring nothing{HolderBytes{}, HolderBytes{}};
    StepDetails details;
    simulator.simulate_beside({nothing, nothing, {}, {}}, plan, schedule, &details);
    std::optional<bool> was_forward;
    for (const StepBoundary& boundary : details.boundaries) {
      if (boundary.phase == Phase::kOptimizer) {
        optimizer = boundary.holders.total().count;
        continue;
      }
      const bool is_forward = boundary.phase == Phase::kForward;
      if (!was_forward || *was_forward != is_forward) passes.emplace_back();
      was_forward = is_forward;
      passes.back().emplace_back(boundary.phase, boundary.holders.total().count);
    }
  }

  const Boundaries& of(StagePass::Kind kind, bool has_gradients) const {
    const std::size_t first = kind == StagePass::Kind::kForward ? 0 : 1;
    return passes.at(has_gradients ? first + 2 : first);
  }

  StageHolds holds;
  std::vector<Boundaries> passes;  // first forward, first backward, later forward, later backward
  std::int64_t optimizer = 0;
};

// Adds up what everything else holds, pass by pass. Weight gradients count from the first backward
// on, because the engine computes them there.
std::vector<PassBytes> simulated_step(const PipelineShape& shape, std::int64_t rank,
                                      const std::vector<SimulatedStage>& stages) {
  std::vector<HeldByStage> held(stages.size());
  const auto others = [&](std::size_t running) {
    std::int64_t bytes = 0;
    for (std::size_t stage = 0; stage < stages.size(); ++stage) {
      const StageHolds& holds = stages[stage].holds;
      bytes += held[stage].in_flight * holds.in_flight.count +
               held[stage].for_weights * holds.for_weights.count;
      if (stage == running) continue;
      bytes += holds.standing.total().count;
      if (held[stage].has_gradients) bytes += holds.gradients.count;
    }
    return bytes;
  };
  std::vector<PassBytes> step;
  for (const StagePass& pass : rank_passes(shape, rank)) {
    const auto stage = static_cast<std::size_t>(pass.stage / shape.num_ranks);
    if (pass.kind == StagePass::Kind::kWeights) {
      --held[stage].for_weights;
      continue;
    }
    const bool is_forward = pass.kind == StagePass::Kind::kForward;
    if (!is_forward) --held[stage].in_flight;
    step.push_back({pass, stages[stage].of(pass.kind, held[stage].has_gradients)});
    for (auto& [phase, bytes] : step.back().boundaries) bytes += others(stage);
    if (is_forward) {
      ++held[stage].in_flight;
    } else {
      held[stage].has_gradients = true;
      if (shape.splits_backward) ++held[stage].for_weights;
    }
  }
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

std::int64_t highest(const std::vector<PassBytes>& passes) {
  std::int64_t most = 0;
  for (const PassBytes& pass : passes) {
    for (const auto& [phase, bytes] : pass.boundaries) most = std::max(most, bytes);
  }
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
      {"deepseek_small", "pp=2,micro=3", {{"dropout_percent", 10}}},
      {"llama_small", "pp=2,micro=4,interleave=2", {}},
      {"llama_small", "pp=2,micro=2,interleave=2", {{"float32_gradients", 1}}, "bfloat16"},
      {"llama_small", "pp=2,micro=6,stages=1/2/1/2", {{"layers", 6}, {"interleave", 2}}},
      {"llama_small", "tp=2,sp,fsdp=2,pp=2,micro=4,interleave=2", {}},
      {"llama_small", "pp=2,micro=4,zb", {}},
      {"llama_small", "pp=4,micro=5,zb", {}, "bfloat16"},
      {"llama_small", "pp=3,micro=3,zb", {{"fused_ops", 1}}, "bfloat16"},
      {"llama_small", "pp=2,micro=3,zb", {{"float32_gradients", 1}}, "bfloat16"},
      {"llama_small", "tp=2,sp,pp=2,micro=3,zb", {}},
      {"llama_small", "ulysses=2,pp=2,micro=3,zb", {{"adapter_rank", 4}}},
      {"llama_small", "cp=2,pp=2,micro=3,zb", {}},
      {"moe_small", "ep=2,pp=2,micro=3,zb", {}},
      {"deepseek_small", "pp=2,micro=3,zb", {}}};
  return all;
}

ModelSpec spec_of(const Case& which, std::int64_t stage) {
  auto dimensions = std::get<std::map<std::string, std::int64_t>>(parse_layout(which.layout));
  dimensions.insert(which.dimensions.begin(), which.dimensions.end());
  ModelSpec spec = std::get<ModelSpec>(make_spec(which.preset, dimensions, which.dtype));
  const std::int64_t ranks = pipeline_shape(spec.dimensions).num_ranks;
  spec.rank = static_cast<int>(stage * (world_size(spec) / ranks));
  return spec;
}

// One rank of a pipeline: the specs and traces of its stages.
struct TracedRank {
  TracedRank(const Case& which, std::int64_t its_rank) : rank(its_rank) {
    shape = pipeline_shape(spec_of(which, 0).dimensions);
    for (const std::int64_t stage : shape.stages_of(rank)) {
      specs.push_back(spec_of(which, stage));
      traces.push_back(MetaModel(specs.back(), OptimizerKind::kAdamW, "", 0).trace());
      REQUIRE(traces.back().stage.value().index == stage);
    }
  }

  void check(const std::vector<Plan>& plans, Schedule schedule) const {
    CAPTURE(to_string(schedule));
    const std::vector<PassBytes> engine = EngineRank(specs, traces, plans, schedule).run();
    std::vector<std::unique_ptr<StepSimulator>> simulators;
    std::vector<SimulatedStage> stages;
    std::vector<const StageHolds*> holds;
    for (std::size_t stage = 0; stage < traces.size(); ++stage) {
      simulators.push_back(std::make_unique<StepSimulator>(traces[stage]));
      stages.emplace_back(*simulators.back(), plans[stage], schedule);
    }
    for (const SimulatedStage& stage : stages) holds.push_back(&stage.holds);
    const std::vector<PassBytes> simulated = simulated_step(shape, rank, stages);
    REQUIRE(engine.size() == simulated.size() + 1);
    for (std::size_t pass = 0; pass < simulated.size(); ++pass) {
      CAPTURE(pass, simulated[pass].pass.stage, simulated[pass].pass.micro_batch);
      CHECK(first_difference(engine[pass].boundaries, simulated[pass].boundaries) == "");
    }
    if (shape.splits_backward) return;  // the engine does not have the peaks of weight passes
    const std::vector<PassMoment> moments = pass_moments(shape, rank);
    Bytes peak;
    for (std::size_t stage = 0; stage < traces.size(); ++stage) {
      peak = std::max(
          peak, simulators[stage]
                    ->simulate_beside(held_by_others(moments, holds, stage), plans[stage], schedule)
                    .peak_bytes());
    }
    CHECK(peak.count == highest(engine));
  }

  PipelineShape shape;
  std::int64_t rank = 0;
  std::vector<ModelSpec> specs;
  std::vector<Trace> traces;
};

TEST_CASE("every rank's predicted bytes equal the engine's at every op boundary") {
  install_counting_allocators();
  for (const Case& which : cases()) {
    const std::int64_t num_ranks = pipeline_shape(spec_of(which, 0).dimensions).num_ranks;
    for (std::int64_t rank = 0; rank < num_ranks; ++rank) {
      CAPTURE(which.preset, which.layout, rank);
      const TracedRank traced(which, rank);
      for (const char* policy : {"none", "full", "attn_only", "nth_first(2)", "root"}) {
        CAPTURE(policy);
        std::vector<Plan> plans;
        for (const Trace& trace : traced.traces) {
          auto plan = resolve(std::get<Policy>(parse_policy(policy)), trace, NoEffect::kAllow);
          if (auto* const resolved = std::get_if<Plan>(&plan)) plans.push_back(*resolved);
        }
        // nth_first(2) does not fit a stage of one block.
        if (plans.size() < traced.traces.size()) continue;
        for (const Schedule schedule : {Schedule::kWholeRegion, Schedule::kOnDemand}) {
          traced.check(plans, schedule);
        }
      }
      for (std::uint32_t seed = 0; seed < testing::num_seeds(2); ++seed) {
        CAPTURE(seed);
        std::vector<Plan> plans;
        for (const Trace& trace : traced.traces) {
          plans.push_back(
              testing::random_plan(trace, seed + static_cast<std::uint32_t>(plans.size())));
        }
        traced.check(plans, Schedule::kOnDemand);
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
