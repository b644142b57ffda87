// Tests recordings that follow each other, overlap or fail half-way, with every way to run
// backward.
#include <ATen/Functions.h>
#include <ATen/SavedTensorHooks.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <catch2/catch.hpp>
#include <thread>

#include "harness/measure/memory.h"
#include "models/scope/scope.h"
#include "tests/support/networks.h"
#include "tests/support/schedules.h"
#include "tests/support/step_meter.h"
#include "tests/support/strict.h"

namespace rematch::testing {
namespace {

const NamedNetwork& network_named(const std::string& name) {
  for (const NamedNetwork& network : hazard_networks()) {
    if (network.name == name) return network;
  }
  throw std::invalid_argument(name);
}

struct Fixture {
  const NamedNetwork& named = network_named("biased mlp");
  Trace trace = trace_of(named);
  Plan full = plan_of_blocks(trace, [](int, int) { return false; });
  Plan mixed = plan_of_blocks(trace, [](int, int op) { return op % 2 == 0; });
};

TEST_CASE("backward twice over a retained graph gives twice the gradient") {
  const Fixture f;
  for (const Plan& plan : {f.full, f.mixed}) {
    for (const Schedule schedule : kSchedules) {
      seed_generator();
      const Network plain = f.named.make();
      at::Tensor plain_loss = loss_of(forward_plain(plain));
      plain_loss.backward({}, /*retain_graph=*/true);
      plain_loss.backward();
      seed_generator();
      const Network network = f.named.make();
      Recording recording(strict(plan, schedule));
      at::Tensor loss = loss_of(forward_with_scopes(network));
      loss.backward({}, /*retain_graph=*/true);
      loss.backward();
      CHECK(first_difference(outcome_of(plain, plain_loss), outcome_of(network, loss)) == "");
    }
  }
}

TEST_CASE("double backward") {
  const Fixture f;
  const auto second_order = [](const Network& network, const at::Tensor& loss) {
    const auto first = torch::autograd::grad({loss}, {network.input}, {}, /*retain_graph=*/true,
                                             /*create_graph=*/true);
    at::sum(first[0] * first[0]).backward();
    return outcome_of(network, loss);
  };
  seed_generator();
  const Network plain = f.named.make();
  const Outcome expected = second_order(plain, loss_of(forward_plain(plain)));
  for (const Schedule schedule : kSchedules) {
    seed_generator();
    const Network network = f.named.make();
    Recording recording(strict(f.mixed, schedule));
    CHECK(first_difference(expected,
                           second_order(network, loss_of(forward_with_scopes(network)))) == "");
  }
}

TEST_CASE("partial backward recomputes only for the requested inputs") {
  const Fixture f;
  seed_generator();
  const Network plain = f.named.make();
  const auto expected =
      torch::autograd::grad({loss_of(forward_plain(plain))}, {plain.parameters[4]});
  for (const Schedule schedule : kSchedules) {
    seed_generator();
    const Network network = f.named.make();
    Recording recording(strict(f.full, schedule));
    const auto gradient =
        torch::autograd::grad({loss_of(forward_with_scopes(network))}, {network.parameters[4]});
    CHECK(at::equal(gradient[0], expected[0]));
  }
}

TEST_CASE("backward works after the recording has ended, and on another thread") {
  const Fixture f;
  const Outcome expected = run_plain(f.named);
  for (const Schedule schedule : kSchedules) {
    seed_generator();
    const Network network = f.named.make();
    at::Tensor loss;
    {
      Recording recording(strict(f.mixed, schedule));
      loss = loss_of(forward_with_scopes(network));
    }
    std::thread([&] { loss.backward(); }).join();
    CHECK(first_difference(expected, outcome_of(network, loss)) == "");
  }
}

// LibTorch gives worker threads only to the engine that runs the first backward of a process. A
// recording that begins later must still run backward in that engine.
TEST_CASE("backward that is nested too deeply for one thread works during and after recordings") {
  constexpr int kDepth = 100;
  const NamedNetwork reentrant = reentrant_network(kDepth);
  const Outcome expected = run_plain(reentrant);
  const Plan plan = plan_of_blocks(trace_of(reentrant), [](int, int) { return false; });
  for (const Schedule schedule : kSchedules) {
    CHECK(first_difference(expected, run_engine(reentrant, plan, schedule)) == "");
  }
  CHECK(first_difference(expected, run_plain(reentrant)) == "");
}

TEST_CASE("consecutive and simultaneous recordings are independent") {
  const Fixture f;
  const Outcome expected = run_plain(f.named);
  const Checkpoint full = strict(f.full, Schedule::kWholeRegion);
  const Checkpoint mixed = strict(f.mixed, Schedule::kOnDemand);
  seed_generator();
  const Network first_network = f.named.make();
  Recording first(full);
  const at::Tensor first_loss = loss_of(forward_with_scopes(first_network));
  at::Generator generator = at::globalContext().defaultGenerator(c10::kCPU);
  seed_generator();
  const Network second_network = f.named.make();
  {
    Recording second(mixed);  // active until it is destroyed at the end of this block
    const at::Tensor second_loss = loss_of(forward_with_scopes(second_network));
    first_loss.backward();
    second_loss.backward();
    CHECK(first_difference(expected, outcome_of(second_network, second_loss)) == "");
  }
  CHECK(first_difference(expected, outcome_of(first_network, first_loss)) == "");
  seed_generator();
  const Network third_network = f.named.make();
  // The recording `second` was destroyed, so this pass belongs to the recording `first`.
  const at::Tensor third_loss = loss_of(forward_with_scopes(third_network));
  third_loss.backward();
  CHECK(first_difference(expected, outcome_of(third_network, third_loss)) == "");
}

TEST_CASE("an exception in forward leaves no state behind") {
  install_counting_allocators();
  const Fixture f;
  const Outcome expected = run_plain(f.named);
  const std::int64_t before = cpu_bytes();
  {
    const Network network = f.named.make();
    Recording recording(strict(f.full, Schedule::kOnDemand));
    const auto failing_forward = [&] {
      const Scope block("blocks", 0);
      const at::Tensor x = at::linear(network.input, network.parameters[0], network.parameters[1]);
      throw std::runtime_error("the model failed");
    };
    CHECK_THROWS_WITH(failing_forward(), "the model failed");
  }
  CHECK(cpu_bytes() == before);
  CHECK(first_difference(expected, run_engine(f.named, f.full, Schedule::kOnDemand)) == "");
}

struct FailsInBackward : torch::autograd::Function<FailsInBackward> {
  static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor& x) {
    return x * 1.0;
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*,
                                                 torch::autograd::variable_list) {
    throw std::runtime_error("backward failed");
  }
};

TEST_CASE("an exception in backward leaves no state behind") {
  install_counting_allocators();
  const NamedNetwork failing = {"fails", [] {
                                  Network network = network_named("biased mlp").make();
                                  const Region first = network.layers[0];
                                  network.layers[0] = [first](const at::Tensor& x) {
                                    return FailsInBackward::apply(first(x)) * first(x);
                                  };
                                  return network;
                                }};
  Trace trace;
  CHECK_THROWS_WITH(trace = trace_of(failing), Catch::Contains("backward failed"));
  const NamedNetwork& good = network_named("biased mlp");
  const Plan plan = plan_of_blocks(trace_of(good), [](int, int) { return false; });
  Plan second_only = plan;
  second_only.regions.erase(second_only.regions.begin());
  const std::int64_t before = cpu_bytes();
  CHECK_THROWS_WITH(run_engine(failing, second_only, Schedule::kOnDemand),
                    Catch::Contains("backward failed"));
  // A failed backward leaves objects in autograd's queue until the thread's next backward.
  CHECK(first_difference(run_plain(good), run_engine(good, plan, Schedule::kOnDemand)) == "");
  CHECK(cpu_bytes() == before);
}

TEST_CASE("without grad mode nothing is recorded") {
  install_counting_allocators();
  const Fixture f;
  seed_generator();
  const Network network = f.named.make();
  at::NoGradGuard no_grad;
  Recording recording(strict(f.full, Schedule::kOnDemand));
  const std::int64_t before = cpu_bytes();
  { const at::Tensor output = forward_with_scopes(network); }
  CHECK(cpu_bytes() == before);
  CHECK(recording.finish() == RegionsRun::kNoneWithoutGrad);
}

TEST_CASE("a recording reports whether any region of its plan ran") {
  const Fixture f;
  seed_generator();
  const Network network = f.named.make();
  const Checkpoint checkpoint = strict(f.full, Schedule::kOnDemand);
  CHECK(Recording(checkpoint).finish() == RegionsRun::kNone);
  {
    Recording recording(checkpoint);
    const at::Tensor loss = loss_of(forward_with_scopes(network));
    const at::NoGradGuard no_grad;
    { const at::Tensor output = forward_with_scopes(network); }
    CHECK(recording.finish() == RegionsRun::kSome);
  }
}

struct Warnings final : c10::WarningHandler {
  void process(const c10::Warning& warning) override { texts.push_back(warning.msg()); }
  std::vector<std::string> texts;
};

TEST_CASE("a step that disables saved-tensor hooks continues without the plan and warns") {
  const Fixture f;
  const Outcome plain = run_plain(f.named);
  for (const Schedule schedule : kSchedules) {
    Warnings warnings;
    const c10::WarningUtils::WarningHandlerGuard handler(&warnings);
    const c10::WarningUtils::WarnAlways each_time;
    const Checkpoint checkpoint = strict(f.full, schedule);
    seed_generator();
    const Network network = f.named.make();
    Recording recording(checkpoint);
    at::SavedTensorDefaultHooks::disable("not here");
    const at::Tensor loss = loss_of(forward_with_scopes(network));
    at::SavedTensorDefaultHooks::enable();
    CHECK(recording.finish() == RegionsRun::kSome);
    loss.backward();
    CHECK(first_difference(plain, outcome_of(network, loss)) == "");
    REQUIRE(!warnings.texts.empty());
    CHECK_THAT(warnings.texts.front(), Catch::Contains("saved-tensor hooks are disabled"));
  }
}

TEST_CASE("a saved tensor can be read outside backward") {
  const Fixture f;
  seed_generator();
  const Network network = f.named.make();
  Recording recording(strict(f.full, Schedule::kOnDemand));
  const at::Tensor loss = loss_of(forward_with_scopes(network));
  const Outcome expected = run_plain(f.named);
  // The recording has not finished, so this backward runs inside forward.
  loss.backward();
  CHECK(first_difference(expected, outcome_of(network, loss)) == "");
}

}  // namespace
}  // namespace rematch::testing
