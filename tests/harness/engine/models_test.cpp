// Real models, reduced: every policy of the catalogue under both schedules against no
// checkpointing, and whole_region against the closure oracle around the blocks.
#include <random>

#include "harness/measure/memory.h"
#include "harness/trace/tracer.h"
#include "models/model.h"
#include "policies/catalogue/catalogue.h"
#include "policies/catalogue/resolve.h"
#include "tests/support/catch.h"
#include "tests/support/networks.h"
#include "tests/support/step_meter.h"

namespace rematch::testing {
namespace {

constexpr Schedule kSchedules[] = {Schedule::kWholeRegion, Schedule::kOnDemand};
constexpr const char* kPolicies[] = {
    "full",       "full_nostop", "nth_last(2)",      "nth_first(2)", "skip_nth(2)",
    "first_n(3)", "last_n(3)",   "skip_list([0,2])", "only_list(1)", "attn_only",
    "save_mm",    "segments(3)", "save_compute",     "root"};

struct Case {
  std::string preset;
  std::map<std::string, std::int64_t> dimensions;
  std::string dtype;
};

const std::vector<Case>& cases() {
  static const std::map<std::string, std::int64_t> llama = {
      {"layers", 4}, {"dim", 32}, {"heads", 4}, {"kv_heads", 2}, {"ffn", 64}, {"tokens", 16}};
  static const std::map<std::string, std::int64_t> wan = {
      {"layers", 4}, {"dim", 48}, {"heads", 4}, {"ffn", 64}, {"tokens", 16}, {"text_tokens", 4}};
  static const std::vector<Case> all = {{"llama_small", llama, "float32"},
                                        {"llama_small", llama, "bfloat16"},
                                        {"wan_small", wan, "float32"},
                                        {"wan_small", wan, "bfloat16"}};
  return all;
}

// A model with its batch; parameters are the same each time.
struct Instance {
  explicit Instance(const Case& which)
      : spec(std::get<ModelSpec>(make_spec(which.preset, which.dimensions, which.dtype))),
        model(make_model(spec, at::kCPU)),
        batch(make_data(spec, "", 1, at::kCPU)->batch(0)) {
    install_counting_allocators();
  }

  Trace trace() {
    Trace result = record_trace([this] { return model->loss(batch); });
    for (const NamedTensor& parameter : model->parameters())
      parameter.tensor.mutable_grad().reset();
    return result;
  }

  Outcome outcome(const at::Tensor& loss) const {
    Outcome result{.loss = loss.detach()};
    for (const NamedTensor& parameter : model->parameters()) {
      result.gradients.push_back(parameter.tensor.grad());
    }
    return result;
  }

  ModelSpec spec;
  std::unique_ptr<Model> model;
  Batch batch;
};

struct Step {
  Outcome outcome;
  std::map<std::string, int> ops;
  std::int64_t after_forward_bytes = 0;
  std::int64_t peak_bytes = 0;
};

Step run_step(Instance& instance, const Checkpoint* checkpoint) {
  StepMeter meter;
  at::Tensor loss;
  if (checkpoint != nullptr) {
    Recording recording(*checkpoint);
    loss = instance.model->loss(instance.batch);
    recording.finish();
  } else {
    loss = instance.model->loss(instance.batch);
  }
  meter.note_after_forward();
  loss.backward();
  return {instance.outcome(loss), meter.ops(), meter.after_forward_bytes(), meter.peak_bytes()};
}

int total(const Step& step) {
  int sum = 0;
  for (const auto& [name, count] : step.ops) sum += count;
  return sum;
}

Plan plan_for(const std::string& policy, const Trace& trace) {
  auto parsed = parse_policy(policy);
  REQUIRE(std::holds_alternative<Policy>(parsed));
  auto plan = resolve(std::get<Policy>(parsed), trace);
  if (const auto* rejected = std::get_if<Rejected>(&plan)) FAIL(rejected->message);
  return std::get<Plan>(plan);
}

TEST_CASE("every policy has the bits of no checkpointing, on_demand no more ops or bytes") {
  for (const Case& which : cases()) {
    const Trace trace = Instance(which).trace();
    Instance plain(which);
    const Step none = run_step(plain, nullptr);
    for (const char* policy : kPolicies) {
      CAPTURE(which.preset, which.dtype, policy);
      const Plan plan = plan_for(policy, trace);
      std::map<Schedule, Step> steps;
      for (const Schedule schedule : kSchedules) {
        const Checkpoint checkpoint(plan, schedule);
        Instance instance(which);
        steps[schedule] = run_step(instance, &checkpoint);
        CHECK(first_difference(none.outcome, steps[schedule].outcome) == "");
      }
      const Step& whole = steps[Schedule::kWholeRegion];
      const Step& on_demand = steps[Schedule::kOnDemand];
      CHECK(total(whole) > total(none));
      CHECK(total(on_demand) <= total(whole));
      CHECK(on_demand.peak_bytes <= whole.peak_bytes);
      CHECK(on_demand.after_forward_bytes <= whole.after_forward_bytes);
    }
  }
}

Step run_closures(Instance& instance, const ClosurePolicy& policy) {
  instance.model->wrap_blocks([policy](const Region& block, const at::Tensor& x) {
    return closure_checkpoint(block, x, policy);
  });
  Step step = run_step(instance, nullptr);
  instance.model->wrap_blocks({});
  return step;
}

TEST_CASE("whole_region executes and holds on real blocks what the closure oracle does") {
  for (const Case& which : cases()) {
    const Trace trace = Instance(which).trace();
    for (std::uint32_t seed = 0; seed < 26; ++seed) {
      // Seed 0 keeps nothing, seed 1 every op that can be kept.
      const auto keep = [seed](int op) {
        if (seed < 2) return seed == 1;
        std::mt19937 bits(seed * 7919U + static_cast<std::uint32_t>(op));
        return bits() % 3U == 0;
      };
      CAPTURE(which.preset, which.dtype, seed);
      const bool early_stop = seed % 5 != 4;
      const Checkpoint checkpoint(plan_of_blocks(
                                      trace, [&](int, int op) { return keep(op); }, early_stop),
                                  Schedule::kWholeRegion);
      Instance recorded(which);
      const Step engine = run_step(recorded, &checkpoint);
      Instance wrapped(which);
      const Step oracle =
          run_closures(wrapped, {.save = [&](const auto&, int op) { return keep(op); },
                                 .early_stop = early_stop,
                                 .preserve_generator = false});
      CHECK(first_difference(oracle.outcome, engine.outcome) == "");
      CHECK(engine.ops == oracle.ops);
      CHECK(engine.after_forward_bytes == oracle.after_forward_bytes);
      CHECK(engine.peak_bytes <= oracle.peak_bytes);
    }
  }
}

}  // namespace
}  // namespace rematch::testing
