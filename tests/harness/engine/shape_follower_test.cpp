// Tests plans for steps with several shapes: see Note [Following a shape].
#include <ATen/Functions.h>

#include <algorithm>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "harness/measure/memory.h"
#include "models/scope/scope.h"
#include "policies/base/rejected.h"
#include "policies/catalogue/shapes.h"
#include "policies/predict/step/step.h"
#include "tests/support/catch.h"
#include "tests/support/hazards/plan_families.h"
#include "tests/support/hazards/random_program.h"
#include "tests/support/hazards/trial.h"
#include "tests/support/networks.h"
#include "tests/support/random_plan.h"
#include "tests/support/schedules.h"
#include "tests/support/seeds.h"
#include "tests/support/step_meter.h"
#include "tests/support/strict.h"

namespace rematch::testing::hazards {
namespace {

using Catch::Contains;

constexpr int kVaryingSteps = 12;
constexpr std::uint32_t kPairs = 60;

Plan combined(const std::vector<Trace>& traces, const std::vector<Plan>& plans) {
  auto plan = combine_shapes(traces, plans);
  if (const auto* rejected = std::get_if<Rejected>(&plan)) FAIL(rejected->message);
  return std::get<Plan>(std::move(plan));
}

Checkpoint following(const Plan& plan, Schedule schedule) {
  return {plan, schedule, Checkpoint::Options{.on_mismatch = OnMismatch::kFollowQuietly}};
}

int recomputed_ops(const Trace& trace, const Plan& shape, Schedule schedule) {
  StepSimulator simulator(trace, OptimizerKind::kNothing);
  return static_cast<int>(simulator.simulate(shape, schedule).recomputed_ops);
}

std::int64_t passes_left(const Checkpoint& checkpoint) { return checkpoint.num_left(); }

// Runs one step of a new model. Returns the number of recomputed ops, without detach.
int recomputed_in_step(const Hazard& hazard, const Checkpoint& checkpoint, int step) {
  Model model = model_of(hazard);
  *model.step = step;
  StepMeter meter;
  Facts facts;
  train_one_step(model, &checkpoint, Backward::kOnce, "", facts);
  return meter.num_recomputed();
}

std::vector<std::string> ops_of_first_region(const Plan& shape) {
  std::vector<std::string> ops;
  for (const PlannedOp& op : shape.types[static_cast<std::size_t>(shape.regions[0].type)].ops) {
    ops.push_back(op.name);
  }
  return ops;
}

// Returns whether the executed ops show which shape is running before the first region of either
// shape ends.
bool differ_at_once(const std::vector<Plan>& shapes) {
  const std::vector<std::string> a = ops_of_first_region(shapes[0]);
  const std::vector<std::string> b = ops_of_first_region(shapes[1]);
  const auto length = static_cast<std::ptrdiff_t>(std::min(a.size(), b.size()));
  const bool ends_alike = shapes[0].regions[0].last_scope == shapes[1].regions[0].last_scope;
  return !std::equal(a.begin(), a.begin() + length, b.begin()) ||
         (ends_alike && a.size() != b.size());
}

struct Tally {
  int exact = 0;
  int unsure = 0;
  std::int64_t left = 0;
  std::int64_t passes = 0;
};

// Runs one step of each shape, and then the given sequence of steps. Some of these steps have
// neither shape.
void check_two_shapes(const Hazard& hazard, const Trial& plain, int num_steps,
                      const std::vector<int>& steps, const std::vector<Trace>& traces,
                      const Plan& plan, Tally& tally, std::int64_t left_by_plain = 0) {
  const std::vector<Plan> shapes = plans_of_shapes(plan);
  const bool has_regions = !shapes[0].regions.empty() && !shapes[1].regions.empty();
  const bool is_predictable = hazard.name.find("backward inside") == std::string::npos;
  for (const Schedule schedule : kSchedules) {
    CAPTURE(to_string(schedule));
    for (std::size_t shape = 0; has_regions && shape < 2; ++shape) {
      CAPTURE(shape);
      const Checkpoint checkpoint = following(plan, schedule);
      const int recomputed = recomputed_in_step(hazard, checkpoint, steps[shape]);
      if (is_predictable && differ_at_once(shapes)) {
        CHECK(recomputed == recomputed_ops(traces[shape], shapes[shape], schedule));
        CHECK(passes_left(checkpoint) == 0);
        for (const Departures& type : checkpoint.departures()) {
          CHECK(type.shape == static_cast<int>(shape));
        }
        ++tally.exact;
      } else {
        ++tally.unsure;
      }
      tally.left += passes_left(checkpoint);
      for (const Departures& type : checkpoint.departures()) tally.passes += type.passes;
    }
    const std::int64_t before = cpu_bytes();
    {
      const Checkpoint checkpoint = following(plan, schedule);
      CHECK(verdict_on(plain, try_to_train(hazard, &checkpoint, Backward::kOnce, num_steps)) == "");
    }
    CHECK(cpu_bytes() <= before + left_by_plain);
  }
}

std::vector<std::string> ops_of_first_layer(const Trace& trace) {
  std::vector<std::string> ops;
  const TracedScope& layer = trace.scopes[trace.blocks.front().scope];
  for (const OpId op : IdRange(layer.first_op, layer.end_op)) ops.push_back(trace.ops[op].name);
  return ops;
}

bool have_the_same_ops(const Trace& a, const Trace& b) {
  return std::equal(a.ops.begin(), a.ops.end(), b.ops.begin(), b.ops.end(),
                    [](const TracedOp& x, const TracedOp& y) { return x.name == y.name; });
}

// Returns the first step whose first layer runs different ops from step 0. If there is none,
// returns the first step that differs anywhere, or nullopt if all steps run the same ops.
std::optional<int> step_of_other_shape(const Hazard& hazard, const Trace& first) {
  std::optional<int> found;
  for (int step = 1; step < kVaryingSteps; ++step) {
    const Trace other = trace_of(hazard, step);
    if (ops_of_first_layer(other) != ops_of_first_layer(first)) return step;
    if (!found.has_value() && !have_the_same_ops(first, other)) found = step;
  }
  return found;
}

TEST_CASE(
    "under plans for two step shapes, steps whose ops vary are bitwise equal to the plain run") {
  prepare_process();
  Tally tally;
  const std::vector<PlanFamily>& families = plan_families();
  std::size_t turn = 0;
  for (const Hazard& hazard : varying_hazards()) {
    CAPTURE(hazard.name);
    const Trial plain = try_to_train(hazard, nullptr, Backward::kOnce, kVaryingSteps);
    REQUIRE(plain.error == "");
    const Trace first = trace_of(hazard);
    const std::optional<int> step = step_of_other_shape(hazard, first);
    if (!step.has_value()) continue;
    const std::vector<Trace> traces = {first, trace_of(hazard, *step)};
    const std::vector<Resolver> resolvers = {Resolver(traces[0]), Resolver(traces[1])};
    for (std::size_t pair = 0; pair < (is_deep() ? families.size() : 4); ++pair) {
      const PlanFamily& of_first = families[turn++ % families.size()];
      const PlanFamily& of_other = families[(turn * 7) % families.size()];
      CAPTURE(of_first.name, of_other.name);
      const auto first_plan = of_first.make(traces[0], resolvers[0]);
      const auto other_plan = of_other.make(traces[1], resolvers[1]);
      if (!first_plan.has_value() || !other_plan.has_value()) continue;
      std::vector<Plan> plans = {*first_plan, *other_plan};
      for (std::size_t i = 0; i < 2; ++i) plans[i].trace_sha256 = resolvers[i].trace_sha256();
      check_two_shapes(hazard, plain, kVaryingSteps, {0, *step}, traces, combined(traces, plans),
                       tally);
    }
  }
  CHECK(tally.exact > 300);
  CHECK(tally.left < tally.passes / 20);
}

TEST_CASE("under plans for two step shapes, random programs are bitwise equal to the plain run",
          "[property]") {
  prepare_process();
  Tally tally;
  for (std::uint32_t seed = 0; seed < num_seeds(kPairs); ++seed) {
    const Hazard hazard = alternating(random_program(seed), random_program(seed + 1000));
    const Trial plain = try_to_train(hazard, nullptr);
    // Skipped, because the program overwrote a tensor that autograd saved.
    if (!plain.facts.has_value()) continue;
    const std::int64_t before = cpu_bytes();
    try_to_train(hazard, nullptr);
    const std::int64_t left_by_plain = cpu_bytes() - before;
    const std::vector<Trace> traces = {trace_of(hazard, 0), trace_of(hazard, 1)};
    for (std::uint32_t i = 0; i < 3; ++i) {
      CAPTURE(seed, i);
      const auto random = i == 2 ? random_offload_plan : random_plan;
      const Plan plan = combined(
          traces, {random(traces[0], seed * 3 + i), random(traces[1], seed * 3 + i + 500)});
      check_two_shapes(hazard, plain, kSteps, {0, 1}, traces, plan, tally, left_by_plain);
    }
  }
  CHECK(tally.exact > 100);
  CHECK(tally.left == 0);
}

using LayerOp = at::Tensor (*)(const at::Tensor& x, const at::Tensor& w);

// Makes four layers with weights of 8 x 8.
NamedNetwork four_layers(LayerOp op) {
  return {"four layers", [op] {
            Network network;
            network.input = at::full({8, 8}, 0.25).requires_grad_();
            for (int layer = 0; layer < 4; ++layer) {
              const at::Tensor w = at::full({8, 8}, 0.1 * (layer + 1)).requires_grad_();
              network.parameters.push_back(w);
              network.layers.push_back([w, op](const at::Tensor& x) { return op(x, w); });
            }
            return network;
          }};
}

NamedNetwork unpadded() {
  return four_layers([](const at::Tensor& x, const at::Tensor& w) {
    return at::tanh(at::mm(at::sin(at::mm(x, w)), w)) + x;
  });
}

NamedNetwork padded() {
  return four_layers([](const at::Tensor& x, const at::Tensor& w) {
    const at::Tensor y = at::sin(at::mm(x, w));
    return at::tanh(at::mm(y.masked_fill(y.gt(0.2), -0.5), w)) + x;
  });
}

NamedNetwork other_activation() {
  return four_layers([](const at::Tensor& x, const at::Tensor& w) {
    return at::sigmoid(at::mm(at::sin(at::mm(x, w)), w)) + x;
  });
}

struct StepFigures {
  std::int64_t after_forward = 0;
  std::int64_t peak = 0;
  std::int64_t recomputed_ops = 0;
  bool operator==(const StepFigures&) const = default;
};
std::ostream& operator<<(std::ostream& out, const StepFigures& step) {
  return out << step.after_forward << " B after forward, " << step.peak << " B at the peak, "
             << step.recomputed_ops << " ops recomputed";
}

StepFigures measured(const NamedNetwork& named, const Checkpoint& checkpoint) {
  const Network network = named.make();
  StepMeter meter;
  at::Tensor loss;
  {
    Recording recording(checkpoint);
    loss = loss_of(forward_with_scopes(network));
    recording.finish();
  }
  meter.note_after_forward();
  loss.backward();
  return {meter.after_forward_bytes(), meter.peak_bytes(), meter.num_recomputed()};
}

StepFigures predicted(const Trace& trace, const Plan& plan, Schedule schedule) {
  const StepPrediction step =
      StepSimulator(trace, OptimizerKind::kNothing).simulate(plan, schedule);
  return {(step.after_forward - step.before).count, (step.peak_bytes() - step.before).count,
          step.recomputed_ops};
}

std::vector<Plan> plans_for(const Trace& trace) {
  std::vector<Plan> plans;
  const Resolver resolver(trace);
  for (const PlanFamily& family : plan_families()) {
    for (const char* name : {"none", "full", "full_nostop", "nth_first(2)", "segments(2)",
                             "save_mm", "save every second"}) {
      if (family.name == name) plans.push_back(*family.make(trace, resolver));
    }
  }
  plans.push_back(random_offload_plan(trace, 1));
  plans.push_back(random_offload_plan(trace, 4));
  for (Plan& plan : plans) plan.trace_sha256 = resolver.trace_sha256();
  return plans;
}

// As soon as the executed ops show which shape is running, the engine drops values that only the
// plan of the other shape keeps. So the bytes equal the bytes under a plan for one shape.
TEST_CASE("bytes and counts equal the prediction for the step shape that is running") {
  prepare_process();
  const std::vector<NamedNetwork> networks = {unpadded(), padded()};
  const std::vector<Trace> traces = {trace_of(networks[0]), trace_of(networks[1])};
  for (const Plan& first : plans_for(traces[0])) {
    for (const Plan& second : plans_for(traces[1])) {
      const Plan plan = combined(traces, {first, second});
      const std::vector<Plan> shapes = plans_of_shapes(plan);
      for (const Schedule schedule : kSchedules) {
        if (plan.regions.empty()) continue;
        const Checkpoint checkpoint = strict(plan, schedule);
        for (const std::size_t shape : {1, 0, 0, 1}) {
          CAPTURE(first.policy, second.policy, to_string(schedule), shape);
          CHECK(measured(networks[shape], checkpoint) ==
                predicted(traces[shape], shapes[shape], schedule));
          CHECK(first_difference(run_plain(networks[shape]),
                                 run_engine(networks[shape], plan, schedule)) == "");
        }
      }
    }
  }
}

TEST_CASE(
    "passes are counted by step shape, and a pass that matches neither shape stops following the "
    "plan") {
  prepare_process();
  const std::vector<Trace> traces = {trace_of(unpadded()), trace_of(padded())};
  const Plan plan = combined(traces, {plans_for(traces[0])[1], plans_for(traces[1])[5]});
  const Checkpoint checkpoint = following(plan, Schedule::kOnDemand);
  const auto run = [&](const NamedNetwork& network) { measured(network, checkpoint); };
  run(unpadded());
  for (int step = 0; step < 3; ++step) run(padded());
  std::vector<Departures> found = checkpoint.departures();
  REQUIRE(found.size() == 2);
  CHECK(found[0].shape == 0);
  CHECK(found[0].passes == 4);
  CHECK(found[1].shape == 1);
  CHECK(found[1].passes == 12);
  CHECK(checkpoint.num_left() == 0);

  run(other_activation());
  found = checkpoint.departures();
  CHECK(found[0].passes + found[1].passes == 20);
  CHECK(found[0].left + found[1].left == 4);
  const std::string difference = found[found[0].left > 0 ? 0 : 1].first_difference;
  CHECK_THAT(difference, Contains("the model ran aten::sigmoid"));
  const Checkpoint refusing = strict(plan, Schedule::kOnDemand);
  CHECK_NOTHROW(measured(padded(), refusing));
  CHECK_THROWS_AS(measured(other_activation(), refusing), StreamMismatch);
}

// Each pass begins with ops that are the same for both shapes.
TEST_CASE("each forward pass of a recording may have a different step shape") {
  prepare_process();
  const std::vector<NamedNetwork> networks = {unpadded(), padded()};
  const std::vector<Trace> traces = {trace_of(networks[0]), trace_of(networks[1])};
  const Plan plan = combined(traces, {plans_for(traces[0])[1], plans_for(traces[1])[5]});
  for (const Schedule schedule : kSchedules) {
    const Checkpoint checkpoint = strict(plan, schedule);
    std::int64_t expected = 0;
    StepMeter meter;
    Recording recording(checkpoint);
    for (const std::size_t shape : {0, 1, 1, 0, 1}) {
      expected += predicted(traces[shape], plans_of_shapes(plan)[shape], schedule).recomputed_ops;
      loss_of(forward_with_scopes(networks[shape].make())).backward();
    }
    recording.finish();
    CHECK(meter.num_recomputed() == expected);
  }
}

// The two shapes differ only in layer 1, which is inside a region of the first shape.
TEST_CASE("a region can switch to the other step shape after its first layer") {
  prepare_process();
  const auto network = [](bool is_masked) {
    return NamedNetwork{"four layers", [is_masked] {
                          Network made = unpadded().make();
                          if (is_masked) made.layers[1] = padded().make().layers[1];
                          return made;
                        }};
  };
  const std::vector<NamedNetwork> networks = {network(false), network(true)};
  const std::vector<Trace> traces = {trace_of(networks[0]), trace_of(networks[1])};
  for (const Plan& first : plans_for(traces[0])) {
    for (const Plan& second : plans_for(traces[1])) {
      const Plan plan = combined(traces, {first, second});
      for (const Schedule schedule : kSchedules) {
        CAPTURE(first.policy, second.policy, to_string(schedule));
        for (const NamedNetwork& each : networks) {
          CHECK(first_difference(run_plain(each), run_engine(each, plan, schedule)) == "");
        }
      }
    }
  }
  const Plan plan = combined(traces, {plans_for(traces[0])[4], plans_for(traces[1])[4]});
  REQUIRE(plan.regions[0].last_scope == "blocks.1");
  const Checkpoint checkpoint = strict(plan, Schedule::kOnDemand);
  CHECK(measured(networks[1], checkpoint) ==
        predicted(traces[1], plans_of_shapes(plan)[1], Schedule::kOnDemand));
}

}  // namespace
}  // namespace rematch::testing::hazards
