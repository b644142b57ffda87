// Tests the whole-step simulator on small made-up traces, and tests properties that hold for every
// plan. step_agreement_test.cpp compares the simulator with the engine.
#include "policies/predict/step/step.h"

#include <stdexcept>

#include "policies/catalogue/catalogue.h"
#include "policies/catalogue/resolve.h"
#include "policies/predict/step/counts.h"
#include "tests/support/catch.h"
#include "tests/support/made_up_profile.h"
#include "tests/support/random_plan.h"
#include "tests/support/random_trace.h"
#include "tests/support/schedules.h"
#include "tests/support/seeds.h"
#include "tests/support/toy_trace.h"

namespace rematch::testing {
namespace {

Plan plan_of(const char* policy, const Trace& trace) {
  return std::get<Plan>(resolve(std::get<Policy>(parse_policy(policy)), trace, NoEffect::kAllow));
}

std::int64_t num_recomputed(const Trace& trace, const Plan& plan, Schedule schedule) {
  std::int64_t sum = 0;
  const PredictedCounts counts = predict_counts(trace, plan, schedule);
  for (const auto& [op, count] : counts.ops(Phase::kRecompute)) sum += count;
  return sum;
}

// A float32 parameter has two moments of its own size, and a step count of 4 bytes. A bfloat16
// parameter of 10 elements has three float32 tensors (120 bytes) and a step count. A float32 copy
// of its gradient exists during the update.
TEST_CASE("an optimizer's bytes are computed from the sizes of the parameters") {
  Trace trace;
  trace.parameters = {{100, "float32", 3}};
  CHECK(optimizer_bytes(trace, OptimizerKind::kNothing) == OptimizerBytes{});
  CHECK(optimizer_bytes(trace, OptimizerKind::kAdamW) == OptimizerBytes{Bytes{3 * 804}, {}});
  trace.parameters = {{10, "bfloat16", 2}, {30, "bfloat16", 1}};
  CHECK(optimizer_bytes(trace, OptimizerKind::kAdamW) ==
        OptimizerBytes{Bytes{2 * 124 + 364}, Bytes{120}});
  // With fused ops, one op reads the gradients as they are.
  trace.dimensions["fused_ops"] = 1;
  CHECK(optimizer_bytes(trace, OptimizerKind::kAdamW) ==
        OptimizerBytes{Bytes{2 * 124 + 364}, Bytes{}});
}

// - torch.optim.AdamW: two bfloat16 moments, and a step count of 4 bytes
// - torch.optim.SGD: a momentum in the parameter's dtype; nothing without momentum
// - bitsandbytes' 8-bit AdamW: two bytes per element, and two float32 scales per block of 256
//   elements; below 4096 elements, two float32 moments
TEST_CASE(
    "for optimizers that rematch does not run, the predicted state is as large as in the "
    "optimizer's library") {
  Trace trace;
  trace.parameters = {{10, "bfloat16", 2}, {30, "float32", 1}};
  const auto state = [&](OptimizerKind optimizer) {
    CHECK(optimizer_bytes(trace, optimizer).temporary == Bytes{});
    return optimizer_bytes(trace, optimizer).state.count;
  };
  CHECK(state(OptimizerKind::kAdamWBfloat16) == 2 * 44 + 124);
  CHECK(state(OptimizerKind::kSgd) == 0);
  CHECK(state(OptimizerKind::kSgdMomentum) == 2 * 20 + 120);
  trace.parameters = {{4096, "bfloat16", 1}};
  CHECK(state(OptimizerKind::kAdamW8Bit) == 2 * 4096 + 2 * 16 * 4);
  trace.parameters = {{4097, "float32", 3}};
  CHECK(state(OptimizerKind::kAdamW8Bit) == 3 * (2 * 4097 + 2 * 17 * 4));
  trace.parameters = {{4095, "bfloat16", 1}};
  CHECK(state(OptimizerKind::kAdamW8Bit) == 2 * 4 * 4095);
}

// `block` and `outside` are numbers of elements. Muon keeps one moment for every element, and AdamW
// a second moment for elements outside blocks.
TEST_CASE("optimizer muon has one moment for block parameters and two for all others") {
  const Trace trace = testing::toy_llama();
  const std::int64_t block = 2 * 16 + 4 * 16 * 16 + 3 * 16 * 32;
  const std::int64_t outside = 64 * 16 + 16 + 16 * 64;
  REQUIRE(trace.parameter_bytes == Bytes{4 * (4 * block + outside)});
  CHECK(optimizer_bytes(trace, OptimizerKind::kMuon) ==
        OptimizerBytes{Bytes{4 * (4 * block + 2 * outside)}, {}});
}

TEST_CASE("the name of every predicted optimizer parses to the same optimizer") {
  for (const std::string_view name : optimizer_kind_names()) {
    CAPTURE(name);
    REQUIRE(optimizer_kind_from_string(name));
    CHECK(to_string(*optimizer_kind_from_string(name)) == name);
  }
  CHECK_FALSE(optimizer_kind_from_string("adam"));
  CHECK_FALSE(optimizer_kind_from_string("adamw(state=float16)"));
}

TEST_CASE(
    "a step without checkpointing recomputes nothing, and releases all activations by its end") {
  const Trace trace = testing::toy_llama();
  StepSimulator simulator(trace);
  const StepPrediction none = simulator.simulate(plan_of("none", trace), Schedule::kOnDemand);
  const Bytes state = optimizer_bytes(trace, OptimizerKind::kAdamW).state;
  CHECK(none.before == trace.parameter_bytes + trace.constant_bytes + state);
  CHECK(none.recomputed_ops == 0);
  CHECK(none.peak.holders[Holder::kRecomputeTransient] == Bytes{});
  CHECK(none.peak_by_phase[static_cast<int>(Phase::kRecompute)] == Bytes{});
  // When the optimizer runs, only the bytes from before the step, the gradients and the loss are
  // alive.
  const Bytes at_the_end = none.peak_by_phase[static_cast<int>(Phase::kOptimizer)];
  const Bytes loss = trace.storages[trace.values[trace.ops.back().outputs.front()].storage].bytes;
  CHECK(at_the_end - loss <= none.before + trace.gradient_bytes);
  CHECK(at_the_end >= none.before + trace.gradient_bytes);
}

TEST_CASE("a plan that keeps fewer ops holds fewer bytes after forward and recomputes more ops") {
  const Trace trace = testing::toy_llama();
  StepSimulator simulator(trace);
  StepPrediction previous = simulator.simulate(plan_of("full", trace), Schedule::kOnDemand);
  for (const char* policy : {"attn_only", "save_mm", "none"}) {
    CAPTURE(policy);
    const StepPrediction step = simulator.simulate(plan_of(policy, trace), Schedule::kOnDemand);
    CHECK(step.after_forward > previous.after_forward);
    CHECK(step.recomputed_ops < previous.recomputed_ops);
    previous = step;
  }
}

TEST_CASE("the parts of a predicted step agree with each other and with the counts", "[property]") {
  for (std::uint32_t seed = 0; seed < testing::num_seeds(40); ++seed) {
    CAPTURE(seed);
    const Trace trace = testing::random_trace(seed);
    StepSimulator simulator(trace);
    const Plan plan = testing::random_plan(trace, seed);
    for (const Schedule schedule : kSchedules) {
      CAPTURE(to_string(schedule));
      const StepPrediction step = simulator.simulate(plan, schedule);
      CHECK(step.recomputed_ops == num_recomputed(trace, plan, schedule));
      Bytes highest;
      StepDetails details;
      simulator.simulate(plan, schedule, &details);
      for (const StepBoundary& boundary : details.boundaries) {
        CHECK(boundary.holders[Holder::kSavedActivations] >= Bytes{});
        CHECK(boundary.holders[Holder::kRecomputeTransient] >= Bytes{});
        CHECK(boundary.holders[Holder::kOther] >= Bytes{});
        if (boundary.holders.total() > highest) {
          highest = boundary.holders.total();
          CHECK((highest < step.peak_bytes() || boundary == step.peak));
        }
      }
      CHECK(highest == step.peak_bytes());
    }
  }
}

TEST_CASE("a step time from a profile is the sum of the times of all ops and recomputed ops",
          "[property]") {
  for (std::uint32_t seed = 0; seed < testing::num_seeds(20); ++seed) {
    CAPTURE(seed);
    const Trace trace = testing::random_trace(seed);
    const Profile profile = testing::made_up_profile(trace, seed);
    StepSimulator simulator(trace);
    simulator.use_profile(profile);
    const Plan plan = testing::random_plan(trace, seed);
    for (const Schedule schedule : kSchedules) {
      const StepTime time = simulator.simulate(plan, schedule).time.value();
      CHECK(time.total() - time.recompute == profile.step_time());
      const bool recomputes = num_recomputed(trace, plan, schedule) > 0;
      CHECK((recomputes || time.recompute.count() == 0));
    }
  }
}

TEST_CASE("kernels of recomputed ops are counted if the profile has kernel counts", "[property]") {
  bool some = false;
  for (std::uint32_t seed = 0; seed < testing::num_seeds(20); ++seed) {
    CAPTURE(seed);
    const Trace trace = testing::random_trace(seed);
    Profile profile = testing::made_up_profile(trace, seed);
    const Plan plan = testing::random_plan(trace, seed);
    StepSimulator simulator(trace);
    for (const Schedule schedule : kSchedules) {
      simulator.use_profile(profile);
      CHECK_FALSE(simulator.simulate(plan, schedule).recomputed_kernels.has_value());
      Profile counted = profile;
      counted.forward_kernels.emplace(trace.ops.size(), 3);
      simulator.use_profile(counted);
      const StepPrediction step = simulator.simulate(plan, schedule);
      CHECK(step.recomputed_kernels == 3 * step.recomputed_ops);
      some |= step.recomputed_ops > 0;
    }
  }
  CHECK(some);
}

TEST_CASE("a plan or a profile of another model is rejected") {
  const Trace trace = testing::toy_llama({.layers = 2});
  const Trace other = testing::toy_llama({.layers = 4});
  StepSimulator simulator(trace);
  CHECK_THROWS_AS(simulator.simulate(plan_of("full", other), Schedule::kOnDemand),
                  std::invalid_argument);
  CHECK_THROWS_AS(simulator.use_profile(testing::made_up_profile(other, 0)), std::invalid_argument);
}

}  // namespace
}  // namespace rematch::testing
