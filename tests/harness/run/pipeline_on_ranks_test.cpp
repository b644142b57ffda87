// Runs pipelines on real ranks, each of which is a process. Compares their loss and gradients with
// one rank's, and their executed ops and peaks with the prediction.
#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/engine/interception.h"
#include "harness/engine/record/op_facts.h"
#include "harness/measure/memory.h"
#include "harness/measure/step_place.h"
#include "harness/run/children/stage_link.h"
#include "harness/run/prediction/prediction.h"
#include "harness/training/training.h"
#include "models/preset/parallel.h"
#include "models/preset/preset.h"
#include "policies/catalogue/catalogue.h"
#include "policies/catalogue/resolve.h"
#include "policies/predict/step/counts.h"
#include "policies/predict/step/step.h"
#include "tests/support/catch.h"
#include "tests/support/random_plan.h"
#include "tests/support/rank_processes.h"
#include "tests/support/seeds.h"

namespace rematch {
namespace {

constexpr double kTolerance = 1e-5;

using Dimensions = std::map<std::string, std::int64_t>;

// Observes a step: its ops by phase, the most bytes at an op boundary, its loss and its gradients.
class StepMeter final : public OpObserver, public StepListener {
 public:
  explicit StepMeter(const Training& training) : training_(training) {}

  void executed(const c10::OperatorHandle& op, Phase observed, const torch::jit::Stack&) override {
    if (is_making_batch_) return;
    const Phase phase = PhaseGuard::effective(observed);
    peak = std::max(peak, current_cpu_memory().total);
    if (phase != Phase::kOptimizer) ++ops[static_cast<std::size_t>(phase)][facts_of(op).name];
  }

  Batch batch(const std::function<Batch()>& make) override {
    is_making_batch_ = true;
    Batch made = make();
    is_making_batch_ = false;
    return made;
  }
  void after_forward(const at::Tensor& of_micro_batch) override {
    is_making_batch_ = true;  // item() runs ops
    if (of_micro_batch.defined()) loss += of_micro_batch.item<double>();
    is_making_batch_ = false;
  }
  void after_backward() override {
    is_making_batch_ = true;
    for (const NamedTensor& parameter : training_.parameters()) {
      gradients[parameter.name] = parameter.tensor.grad().clone();
    }
    is_making_batch_ = false;
  }

  std::array<std::map<std::string, std::int64_t>, kNumPhases> ops;
  Bytes peak;
  double loss = 0;
  std::map<std::string, at::Tensor> gradients;

 private:
  const Training& training_;
  bool is_making_batch_ = false;
};

TrainingSettings settings_of(const ModelSpec& spec, StageLink* link) {
  TrainingSettings settings;
  settings.model = spec;
  settings.seed = 1;
  settings.optimizer = OptimizerKind::kNothing;
  settings.stage_link = link;
  return settings;
}

StepMeter run_step(Training& training, const Plan& plan, Schedule schedule) {
  training.use_plan(plan, schedule);
  StepMeter meter(training);
  {
    const OpObserverGuard observe(&meter);
    training.step(0, meter);
  }
  return meter;
}

// A rank of ep has a part of the experts, which are in dimension 0.
void check_gradients(const StepMeter& found, const StepMeter& expected, const RankAxis& ep) {
  for (const auto& [name, gradient] : found.gradients) {
    CAPTURE(name);
    at::Tensor whole = expected.gradients.at(name);
    if (whole.size(0) != gradient.size(0)) {
      whole = whole.narrow(0, ep.position * gradient.size(0), gradient.size(0));
    }
    const double difference = (gradient - whole).abs().max().item<double>();
    CHECK(difference <= kTolerance * whole.abs().max().item<double>());
  }
}

void check_stage(const char* preset, const char* layout, const Dimensions& dimensions) {
  install_counting_allocators();
  Dimensions all = std::get<Dimensions>(parse_layout(layout));
  all.insert(dimensions.begin(), dimensions.end());
  ModelSpec spec = std::get<ModelSpec>(make_spec(preset, all));
  spec.rank = testing::this_place().rank;
  const Ranks ranks = testing::this_rank(rank_groups(spec));
  for (const DimensionEntry& entry : layout_entries()) all.erase(std::string(entry.name));
  for (const DimensionEntry& entry : stage_entries()) all.erase(std::string(entry.name));
  // One rank runs the batches of all ranks that share no batch.
  all["accumulate"] = micro_batches(spec) * data_ranks(spec);
  Training whole(settings_of(std::get<ModelSpec>(make_spec(preset, all)), nullptr));
  const StepMeter expected = run_step(whole, {}, Schedule::kOnDemand);

  const Trace trace = MetaModel(spec, OptimizerKind::kNothing, "", 1).trace();
  std::vector<Plan> plans;
  for (const char* policy : {"none", "full", "attn_only", "nth_first(2)"}) {
    plans.push_back(
        std::get<Plan>(resolve(std::get<Policy>(parse_policy(policy)), trace, NoEffect::kAllow)));
  }
  for (std::uint32_t seed = 0; seed < testing::num_seeds(2); ++seed) {
    plans.push_back(testing::random_plan(trace, seed));
  }
  const Bytes before = current_cpu_memory().total;
  RankStageLink link(spec);
  Training training(settings_of(spec, &link));
  const StepMeter plain = run_step(training, plans.front(), Schedule::kOnDemand);
  // One rank has no balanced routing, so its gradients differ.
  const bool is_balanced = spec.option("balanced_routing") == 1;
  if (!is_balanced) check_gradients(plain, expected, rank_axis(spec, "ep"));
  const Bytes kept = current_cpu_memory().total - before;
  for (const Plan& plan : plans) {
    for (const Schedule schedule : {Schedule::kWholeRegion, Schedule::kOnDemand}) {
      CAPTURE(plan.policy, to_string(schedule));
      const Bytes idle = current_cpu_memory().total;
      const StepMeter step = run_step(training, plan, schedule);
      for (const auto& [name, gradient] : step.gradients) {
        CAPTURE(name);
        CHECK(gradient.equal(plain.gradients.at(name)));
      }
      // A rank of ep or cp has the loss of its own tokens only.
      const bool has_all_tokens = data_ranks(spec) == 1 && !rank_axis(spec, "cp").is_split();
      if (training.stage().is_last() && has_all_tokens) {
        CHECK(step.loss == Approx(expected.loss).epsilon(kTolerance));
      }
      CHECK(step.ops == predict_counts(trace, plan, schedule).by_op);
      // Between steps only parameters and constants are alive.
      const StepPrediction predicted =
          StepSimulator(trace, OptimizerKind::kNothing).simulate(plan, schedule);
      const Bytes standing = trace.parameter_bytes + trace.constant_bytes - trace.stage->held_bytes;
      // Without balanced routing, the bytes of experts depend on the tokens.
      if (rank_axis(spec, "ep").is_split() && !is_balanced) continue;
      CHECK(step.peak - idle == predicted.peak_bytes() - standing);
    }
  }
  CHECK(kept.count > 0);
}

const Dimensions kTiny = {{"layers", 8}, {"dim", 32},    {"heads", 4}, {"kv_heads", 2},
                          {"ffn", 48},   {"vocab", 256}, {"batch", 2}, {"tokens", 16}};

const Dimensions kTinyMoe = {{"layers", 4},      {"dim", 32},   {"heads", 4},
                             {"kv_heads", 2},    {"ffn", 48},   {"experts", 4},
                             {"vocab", 256},     {"batch", 2},  {"expert_ffn", 24},
                             {"shared_ffn", 16}, {"tokens", 16}};

constexpr const char* kTwo = "[.two_ranks]";
constexpr const char* kFour = "[.four_ranks]";

}  // namespace

TEST_CASE("pipelines of two ranks give the results of one rank under all plans") {
  CHECK(testing::failure_of_ranks(2, kTwo) == "");
}

TEST_CASE("pipelines of four ranks give the results of one rank under all plans") {
  CHECK(testing::failure_of_ranks(4, kFour) == "");
}

TEST_CASE("rank: two stages of llama", kTwo) { check_stage("llama_small", "pp=2,micro=4", kTiny); }
TEST_CASE("rank: two uneven stages with fewer micro-batches than stages", kTwo) {
  check_stage("llama_small", "pp=2,micro=1,first_layers=3", kTiny);
}
TEST_CASE("rank: two given stages of llama", kTwo) {
  check_stage("llama_small", "pp=2,micro=3,stages=5/3", kTiny);
}
TEST_CASE("rank: two stages with packed weights", kTwo) {
  Dimensions dimensions = kTiny;
  dimensions["packed_weights"] = 1;
  check_stage("llama_small", "pp=2,micro=3", dimensions);
  dimensions["fused_ops"] = 1;
  check_stage("llama_small", "pp=2,micro=3", dimensions);
}
TEST_CASE("rank: two stages with packed experts", kTwo) {
  Dimensions dimensions = kTinyMoe;
  dimensions["packed_weights"] = 1;
  check_stage("moe_small", "pp=2,micro=2", dimensions);
}
TEST_CASE("rank: two stages that split the sequence", kFour) {
  check_stage("llama_small", "cp=2,pp=2,micro=3", kTiny);
  check_stage("llama_small", "cp=2,ring,pp=2,micro=3", kTiny);
}
TEST_CASE("rank: two stages that split the experts", kFour) {
  check_stage("moe_small", "ep=2,pp=2,micro=3", kTinyMoe);
  check_stage("moe_small", "ep=2,balanced_routing,pp=2,micro=3", kTinyMoe);
}
TEST_CASE("rank: four stages of llama", kFour) {
  check_stage("llama_small", "pp=4,micro=6", kTiny);
}
TEST_CASE("rank: four stages with as many micro-batches", kFour) {
  check_stage("llama_small", "pp=4,micro=4", kTiny);
}

}  // namespace rematch
