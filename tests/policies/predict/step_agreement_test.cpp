// Compares the whole-step simulator with the engine at every op boundary of a step on meta tensors.
// Covers every policy of the catalogue on every family of small models, and random plans.
#include "harness/engine/interception.h"
#include "harness/measure/memory.h"
#include "harness/measure/step_place.h"
#include "harness/run/prediction/prediction.h"
#include "harness/training/training.h"
#include "models/preset/preset.h"
#include "policies/base/rejected.h"
#include "policies/catalogue/catalogue.h"
#include "policies/catalogue/resolve.h"
#include "policies/predict/device/project_profile.h"
#include "policies/predict/device/roofline.h"
#include "policies/predict/region/order.h"
#include "policies/predict/step/step.h"
#include "reports/record/memory.h"
#include "tests/support/catch.h"
#include "tests/support/meta_engine.h"
#include "tests/support/policy_matrix.h"
#include "tests/support/random_plan.h"
#include "tests/support/seeds.h"
#include "tests/support/small_presets.h"

namespace rematch {
namespace {

struct Sample {
  Phase phase;
  std::int64_t bytes;
  bool operator==(const Sample&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Sample& sample) {
  return out << to_string(sample.phase) << " " << sample.bytes;
}

class SamplingObserver final : public OpObserver {
 public:
  void executed(const c10::OperatorHandle&, Phase phase, const torch::jit::Stack&) override {
    samples.push_back({PhaseGuard::effective(phase), current_meta_memory().total.count});
  }
  std::vector<Sample> samples;
};

// Keeps the samples of the last micro-batch. Drops those of batches that are made.
class StepStart final : public StepListener {
 public:
  explicit StepStart(SamplingObserver& observer) : observer_(observer) {}
  void before_step() override { observer_.samples.clear(); }
  void before_next_micro_batch() override { observer_.samples.clear(); }

 private:
  SamplingObserver& observer_;
};

// Runs a plan in the engine on a model on meta. Returns the figures of every boundary, and a
// summary.
class Engine {
 public:
  explicit Engine(const ModelSpec& spec, OptimizerKind optimizer = OptimizerKind::kAdamW)
      : spec_(spec), optimizer_(optimizer) {
    trace_ = MetaModel(spec, optimizer, "", 0).trace();
  }
  const Trace& trace() const { return trace_; }

  // Replaces the optimizer's boundaries by a single boundary, the highest.
  std::vector<Sample> samples(const Plan& plan, Schedule schedule) const {
    TrainingSettings settings;
    settings.model = spec_;
    settings.device = at::kMeta;
    settings.optimizer = optimizer_;
    Training training(settings);
    training.optimizer().prepare();
    training.use_plan(plan, schedule);
    SamplingObserver observer;
    {
      const OpObserverGuard observe(&observer);
      StepStart listener(observer);
      training.step(0, listener);
    }
    std::vector<Sample> merged;
    for (const Sample& sample : observer.samples) {
      if (sample.phase == Phase::kOptimizer && merged.back().phase == Phase::kOptimizer) {
        merged.back().bytes = std::max(merged.back().bytes, sample.bytes);
      } else {
        merged.push_back(sample);
      }
    }
    return merged;
  }

  MemoryRecord memory(const Plan& plan, Schedule schedule) const {
    MetaModel model(spec_, optimizer_, "", 0);
    return testing::run_on_meta(model, plan, schedule).memory;
  }

 private:
  ModelSpec spec_;
  OptimizerKind optimizer_;
  Trace trace_;
};

std::vector<Sample> simulated_samples(StepSimulator& simulator, const Plan& plan,
                                      Schedule schedule) {
  std::vector<Sample> samples;
  StepDetails details;
  simulator.simulate(plan, schedule, &details);
  for (const StepBoundary& boundary : details.boundaries) {
    samples.push_back({boundary.phase, boundary.holders.total().count});
  }
  return samples;
}

// Describes the first boundary that differs. Returns "" if no boundary differs.
std::string first_difference(const std::vector<Sample>& engine,
                             const std::vector<Sample>& simulated) {
  const auto [real, guess] =
      std::mismatch(engine.begin(), engine.end(), simulated.begin(), simulated.end());
  if (real == engine.end() && guess == simulated.end()) return "";
  std::ostringstream text;
  text << "boundary " << real - engine.begin() << ": engine ";
  if (real == engine.end()) {
    text << "ended";
  } else {
    text << *real;
  }
  text << ", simulator ";
  if (guess == simulated.end()) {
    text << "ended";
  } else {
    text << *guess;
  }
  return text.str();
}

std::string in_words(const HeldBytes& holders) {
  std::string text;
  for (const auto& [holder, bytes] : holders) {
    text.append(to_string(holder)).append(" ").append(std::to_string(bytes.count)).append(" ");
  }
  return text;
}

void check_summary(const Engine& engine, StepSimulator& simulator, const Plan& plan,
                   Schedule schedule) {
  const MemoryRecord memory = engine.memory(plan, schedule);
  const StepPrediction step = simulator.simulate(plan, schedule);
  CHECK(step.peak_bytes() == memory.peak_allocated.value());
  CHECK(step.before == memory.baseline.value());
  CHECK(step.after_forward == memory.after_forward.value());
  CHECK(step.peak.phase == memory.peak_phase.value());
  const std::optional<ScopeId> scope = step.peak.scope;
  CHECK((scope ? engine.trace().scopes[*scope].path : "") == memory.peak_scope);
  HeldBytes expected;
  for (const Holder holder : kAll<Holder>) {
    if (holder != Holder::kFrozenParameters) expected[holder] = step.peak.holders[holder];
  }
  CHECK(in_words(memory.holders_at_peak) == in_words(expected));
}

struct Case {
  std::string preset;
  std::map<std::string, std::int64_t> dimensions;
  const char* dtype = "float32";
};

// With so many classes, the fused loss computes the logits again unless kept_logits is 1.
constexpr std::int64_t kLargeVocab = 4096;

const std::vector<Case>& cases() {
  static const std::vector<Case> all = [] {
    std::vector<Case> list = {
        {"llama_small", {{"layers", 3}}, "bfloat16"},
        // One rank of each parallel layout. Together they run collectives of all kinds.
        {"llama_small", {{"layers", 3}, {"tp", 2}, {"sp", 1}}},
        {"llama_small", {{"layers", 3}, {"tp", 2}, {"fsdp", 3}}},
        {"llama_small", {{"layers", 3}, {"fsdp", 8}, {"fused_ops", 1}}, "bfloat16"},
        {"llama_small", {{"layers", 3}, {"ulysses", 2}}, "bfloat16"},
        {"llama_small", {{"layers", 3}, {"cp", 2}, {"fsdp", 4}}, "bfloat16"},
        {"llama_small", {{"layers", 3}, {"tp", 2}, {"cp", 4}, {"fused_ops", 1}, {"accumulate", 2}}},
        {"wan_small", {{"layers", 3}, {"tp", 2}, {"fsdp", 2}}},
        {"wan_small", {{"layers", 3}, {"tp", 2}, {"sp", 1}}},
        {"ltx_small", {{"layers", 3}, {"tp", 2}, {"sp", 1}, {"batch", 1}}},
        {"moe_small", {{"layers", 3}, {"ep", 2}, {"fsdp", 2}}},
        {"moe_small", {{"layers", 3}, {"ep", 3}, {"fsdp", 6}, {"expert_fsdp", 2}}},
        {"deepseek_small", {{"layers", 3}, {"tp", 2}, {"ep", 2}}},
        {"moe_small", {{"layers", 3}, {"ep", 3}, {"routing_skew_percent", 130}}},
        {"deepseek_small",
         {{"layers", 3},
          {"ep", 4},
          {"fsdp", 8},
          {"expert_fsdp", 2},
          {"routing_skew_percent", 215}}},
        {"llama_small", {{"layers", 3}, {"tp", 2}, {"fsdp", 3}, {"accumulate", 2}}, "bfloat16"},
        {"llama_small", {{"layers", 3}, {"accumulate", 2}, {"float32_gradients", 1}}, "bfloat16"},
        {"wan_small", {{"layers", 3}, {"fused_ops", 1}, {"float32_gradients", 1}}, "bfloat16"},
        {"llama_small",
         {{"layers", 3}, {"fused_ops", 1}, {"vocab", kLargeVocab}, {"kept_logits", 1}},
         "bfloat16"},
        {"llama_small", {{"layers", 3}, {"fused_ops", 1}, {"vocab", kLargeVocab}}, "bfloat16"},
        {"moe_small",
         {{"layers", 3}, {"fused_ops", 1}, {"vocab", kLargeVocab}, {"accumulate", 2}, {"fsdp", 2}}},
        {"llama_small", {{"layers", 3}, {"tp", 2}, {"sp", 1}, {"packed_weights", 1}}},
        {"moe_small", {{"layers", 3}, {"ep", 2}, {"fsdp", 2}, {"packed_weights", 1}}}};
    for (const std::string& preset : testing::small_presets()) {
      list.push_back({preset, {{"layers", 3}}});
      list.push_back({preset, {{"layers", 3}, {"fused_ops", 1}}});
      list.push_back({preset, {{"layers", 3}, {"packed_weights", 1}}});
      list.push_back({preset, {{"layers", 3}, {"fused_ops", 1}, {"packed_weights", 1}}});
      list.push_back({preset, {{"layers", 3}, {"accumulate", 3}}});
      list.push_back({preset, {{"layers", 3}, {"fused_ops", 1}, {"accumulate", 2}}});
    }
    return list;
  }();
  return all;
}

// Normally chooses an eighth of the policies for each case, in turn. With REMATCH_SEEDS set,
// chooses all policies.
bool is_chosen(std::size_t policy_index, std::size_t case_index) {
  constexpr std::size_t kShare = 8;
  const bool all = testing::num_seeds(1) > 1;
  return all || (policy_index + case_index) % kShare == 0;
}

// Omits holders of zero bytes.
std::string in_words(const std::map<std::string, HeldBytes>& by_phase) {
  std::string text;
  for (const auto& [phase, held] : by_phase) {
    HeldBytes some = held;
    std::erase_if(some, [](const auto& holder) { return holder.second.count == 0; });
    text.append(phase).append(": ").append(in_words(some)).append("; ");
  }
  return text;
}

std::string in_words(const std::map<std::string, Bytes>& by_phase) {
  std::string text;
  for (const auto& [phase, bytes] : by_phase) {
    text.append(phase).append(" ").append(std::to_string(bytes.count)).append("; ");
  }
  return text;
}

void check_record(const MemoryRecord& predicted, const MemoryRecord& engine) {
  CHECK(predicted.peak_allocated == engine.peak_allocated);
  CHECK(predicted.peak_requested == engine.peak_requested);
  CHECK(predicted.peak_phase == engine.peak_phase);
  CHECK(predicted.peak_scope == engine.peak_scope);
  CHECK(predicted.after_forward == engine.after_forward);
  CHECK(predicted.parameter == engine.parameter);
  CHECK(predicted.baseline == engine.baseline);
  CHECK(predicted.baseline_requested == engine.baseline_requested);
  CHECK(in_words(predicted.peak_by_phase) == in_words(engine.peak_by_phase));
  CHECK(in_words(std::map<std::string, HeldBytes>{{"peak", predicted.holders_at_peak}}) ==
        in_words(std::map<std::string, HeldBytes>{{"peak", engine.holders_at_peak}}));
  CHECK(in_words(predicted.holders_by_phase) == in_words(engine.holders_by_phase));
  CHECK(predicted.host == engine.host);
}

// Frozen weights, adapters and offloads have fields of their own in the record.
TEST_CASE(
    "the predicted record of a step equals the engine's, with exact sizes and with CUDA's rounded "
    "sizes") {
  for (const std::int64_t round : {std::int64_t{1}, kCudaRounding}) {
    for (const Case& which : std::vector<Case>{
             {"llama_small", {{"layers", 3}}, "bfloat16"},
             {"llama_small", {{"adapter_rank", 4}}},
             {"llama_small", {{"frozen_layers", 2}}},
             {"llama_small", {{"tp", 2}, {"fsdp", 3}}},
             {"wan_small", {{"layers", 3}}},
             {"moe_small", {{"fused_ops", 1}}},
             {"llama_small", {{"accumulate", 4}}, "bfloat16"},
             {"moe_small", {{"ep", 2}, {"accumulate", 3}}},
             {"llama_small", {{"accumulate", 2}, {"float32_gradients", 1}}, "bfloat16"}}) {
      CAPTURE(round, which.preset, which.dimensions);
      const ModelSpec spec =
          std::get<ModelSpec>(make_spec(which.preset, which.dimensions, which.dtype));
      const TracedModel traced = trace_model(spec, OptimizerKind::kAdamW, "", 0, round);
      StepPredictor predictor(traced);
      const Resolver resolver(traced.trace);
      MetaModel model(spec, OptimizerKind::kAdamW, "", 0);
      for (const char* policy : {"none", "full", "attn_only", "offload_inputs(full)", "root"}) {
        const auto plan = plan_if_possible(policy, resolver);
        REQUIRE(plan.has_value());
        for (const Schedule schedule : {Schedule::kWholeRegion, Schedule::kOnDemand}) {
          CAPTURE(policy, to_string(schedule));
          const PredictedStep predicted = predictor.predict(*plan, schedule);
          const testing::EngineFigures engine = testing::run_on_meta(model, *plan, schedule);
          check_record(predicted.memory, engine.memory);
          CHECK((predicted.counts.by_op == engine.counts.by_op));
          CHECK((predicted.counts.by_class == engine.counts.by_class));
        }
      }
    }
  }
  install_counting_allocators();
}

// On a roofline, equal ops have equal times. Projecting the roofline of a model with few layers
// must therefore give the roofline of the same model with many layers.
TEST_CASE("a projected profile has the right time for every op of the full model") {
  install_counting_allocators();
  struct Sizes {
    const char* model;
    int few;
    int many;
  };
  for (const auto& [model, few_layers, many_layers] : {Sizes{"llama_small", 3, 9},
                                                       {"wan_small", 3, 8},
                                                       {"ltx_small", 3, 7},
                                                       {"moe_small", 4, 8},
                                                       {"deepseek_small", 4, 9}}) {
    CAPTURE(model);
    const auto trace_of = [&](int layers) {
      return Engine(std::get<ModelSpec>(make_spec(model, {{"layers", layers}}, "float32"))).trace();
    };
    const Trace few = trace_of(few_layers);
    const Trace many = trace_of(many_layers);
    const DeviceSheet& sheet = *find_device_sheet("h100");
    auto result = project_profile(roofline_profile(few, sheet), few, many, few_layers);
    if (const auto* rejected = std::get_if<Rejected>(&result)) FAIL(rejected->message);
    const Profile projected = std::get<Profile>(std::move(result));
    CHECK_FALSE(profile_problem(projected, many).has_value());
    const Profile own = roofline_profile(many, sheet);
    CHECK(projected.forward == own.forward);
    CHECK(projected.backward == own.backward);
    CHECK(std::abs((projected.optimizer - own.optimizer).count()) <= many_layers);  // rounding
  }
}

TEST_CASE("every policy's predicted bytes equal the engine's at every op boundary") {
  install_counting_allocators();
  const std::vector<std::string> policies = testing::matrix_policies();
  for (std::size_t case_index = 0; case_index < cases().size(); ++case_index) {
    const Case& which = cases()[case_index];
    CAPTURE(which.preset, which.dtype, which.dimensions);
    const Engine engine(
        std::get<ModelSpec>(make_spec(which.preset, which.dimensions, which.dtype)));
    StepSimulator simulator(engine.trace());
    int num_plans = 0;
    for (std::size_t policy_index = 0; policy_index < policies.size(); ++policy_index) {
      if (!is_chosen(policy_index, case_index)) continue;
      CAPTURE(policies[policy_index]);
      const auto policy = parse_policy(policies[policy_index]);
      // matrix_policies() also contains texts that are not valid policies.
      if (!std::holds_alternative<Policy>(policy)) continue;
      const auto plan = resolve(std::get<Policy>(policy), engine.trace(), NoEffect::kAllow);
      if (!std::holds_alternative<Plan>(plan))
        continue;  // the policy matches nothing in this
                   // model family
      ++num_plans;
      for (const Schedule schedule : {Schedule::kWholeRegion, Schedule::kOnDemand}) {
        CAPTURE(to_string(schedule));
        const Plan& resolved = std::get<Plan>(plan);
        CHECK(first_difference(engine.samples(resolved, schedule),
                               simulated_samples(simulator, resolved, schedule)) == "");
        check_summary(engine, simulator, resolved, schedule);
      }
    }
    CHECK(num_plans > 5);
  }
}

TEST_CASE("the predicted bytes of random plans equal the engine's at every op boundary",
          "[property]") {
  install_counting_allocators();
  for (const Case& which : cases()) {
    CAPTURE(which.preset, which.dtype, which.dimensions);
    const Engine engine(
        std::get<ModelSpec>(make_spec(which.preset, which.dimensions, which.dtype)));
    StepSimulator simulator(engine.trace());
    for (std::uint32_t seed = 0; seed < testing::num_seeds(5); ++seed) {
      CAPTURE(seed);
      const Plan plan = testing::random_plan(engine.trace(), seed);
      for (const Schedule schedule : {Schedule::kWholeRegion, Schedule::kOnDemand}) {
        CAPTURE(to_string(schedule));
        CHECK(first_difference(engine.samples(plan, schedule),
                               simulated_samples(simulator, plan, schedule)) == "");
        check_summary(engine, simulator, plan, schedule);
      }
    }
  }
}

TEST_CASE("predicted bytes of random offloading plans equal the engine's at every op boundary",
          "[property]") {
  install_counting_allocators();
  for (const Case& which : cases()) {
    CAPTURE(which.preset, which.dtype, which.dimensions);
    const Engine engine(
        std::get<ModelSpec>(make_spec(which.preset, which.dimensions, which.dtype)));
    StepSimulator simulator(engine.trace());
    int num_moved = 0;
    for (std::uint32_t seed = 0; seed < testing::num_seeds(5); ++seed) {
      CAPTURE(seed);
      const Plan plan = testing::random_offload_plan(engine.trace(), seed);
      for (const Schedule schedule : {Schedule::kWholeRegion, Schedule::kOnDemand}) {
        CAPTURE(to_string(schedule));
        CHECK(first_difference(engine.samples(plan, schedule),
                               simulated_samples(simulator, plan, schedule)) == "");
        check_summary(engine, simulator, plan, schedule);
        num_moved += simulator.simulate(plan, schedule).host.copied_back.count > 0;
      }
    }
    CHECK(num_moved > 0);
  }
}

}  // namespace
}  // namespace rematch
