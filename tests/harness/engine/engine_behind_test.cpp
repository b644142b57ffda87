// Tests which autograd engine runs backward. The first recording replaces the process's autograd
// engine, but the previous engine must still run every backward. The previous engine is LibTorch's
// own, or one that another library has installed.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <torch/csrc/autograd/anomaly_mode.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/engine.h>

#include <atomic>
#include <stdexcept>
#include <thread>
#include <utility>

#include "harness/engine/interception.h"
#include "kernels/libtorch/versions.h"
#include "tests/support/catch.h"
#include "tests/support/networks.h"
#include "tests/support/schedules.h"
#include "tests/support/strict.h"

namespace rematch::testing {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Engine;
using torch::autograd::variable_list;

// One thread nests at most 60 backward passes, so at this depth the engine also uses its pool of
// threads.
constexpr int kDepth = 100;

// Imitates an engine that another library installs, such as Python's torch. Counts its calls.
struct OtherEngine final : Engine {
  ~OtherEngine() override { stop(); }
  variable_list execute(const torch::autograd::edge_list& roots, const variable_list& inputs,
                        bool keep_graph, bool create_graph, bool accumulate_grad,
                        const torch::autograd::edge_list& outputs) override {
    ++num_executed;
    return Engine::execute(roots, inputs, keep_graph, create_graph, accumulate_grad, outputs);
  }
  c10::intrusive_ptr<at::ivalue::Future> execute_with_graph_task(
      const std::shared_ptr<torch::autograd::GraphTask>& graph_task,
      libtorch::NodePointer graph_root, torch::autograd::InputBuffer&& input_buffer) override {
    ++num_graph_tasks;
    return Engine::execute_with_graph_task(graph_task, std::move(graph_root),
                                           std::move(input_buffer));
  }
  std::unique_ptr<torch::autograd::AnomalyMetadata> make_anomaly_metadata() override {
    ++num_metadata;
    return Engine::make_anomaly_metadata();
  }
  void thread_on_exception(const std::shared_ptr<torch::autograd::GraphTask>& graph_task,
                           const libtorch::NodePointer& node, std::exception& error) override {
    ++num_exceptions;
    Engine::thread_on_exception(graph_task, node, error);
  }
  std::unique_ptr<torch::autograd::SavedVariableHooks> get_default_saved_variable_hooks() override {
    ++num_asked_for_hooks;
    return nullptr;
  }

  std::atomic<int> num_executed{0};
  std::atomic<int> num_graph_tasks{0};
  std::atomic<int> num_metadata{0};
  std::atomic<int> num_exceptions{0};
  std::atomic<int> num_asked_for_hooks{0};
};

OtherEngine& other_engine() {
  static auto* engine =
      new OtherEngine;  // never deleted, because worker threads may outlive static objects
  return *engine;
}

// Installs the other engine before any code of rematch runs and before the first backward of the
// process, because the engine that runs the first backward gets the worker threads.
const bool installed_first = [] {
  torch::autograd::set_default_engine_stub([]() -> Engine& { return other_engine(); });
  return true;
}();

const NamedNetwork& network() {
  for (const NamedNetwork& named : hazard_networks()) {
    if (named.name == "biased mlp") return named;
  }
  throw std::logic_error("the networks lack 'biased mlp'");
}

Plan full_plan() {
  return plan_of_blocks(trace_of(network()), [](int, int) { return false; });
}

// Returns how much `count` increases during `run`.
template <typename Run>
int growth(const std::atomic<int>& count, const Run& run) {
  const int before = count;
  run();
  return count - before;
}

TEST_CASE("the previous engine runs backward before, during and after recordings") {
  REQUIRE(installed_first);
  const std::atomic<int>& executed = other_engine().num_executed;
  CHECK(growth(executed, [] { run_plain(network()); }) == 1);
  const Plan plan = full_plan();
  const Outcome expected = run_plain(network());
  for (const Schedule schedule : kSchedules) {
    Outcome outcome;
    CHECK(growth(executed, [&] { outcome = run_engine(network(), plan, schedule); }) == 1);
    CHECK(first_difference(expected, outcome) == "");
  }
  CHECK(growth(executed, [] { run_plain(network()); }) == 1);
  CHECK(growth(other_engine().num_graph_tasks, [] { run_plain(network()); }) == 1);
}

TEST_CASE("saved-tensor hooks are requested from the previous engine only outside of regions") {
  const Plan plan = full_plan();
  const std::atomic<int>& asked = other_engine().num_asked_for_hooks;
  const int plain = growth(asked, [] { run_plain(network()); });
  const int checkpointed = growth(asked, [&] { run_engine(network(), plan, Schedule::kOnDemand); });
  CHECK(plain > 0);
  CHECK(checkpointed < plain);
  // The loss is outside of all regions, so autograd still asks the previous engine for hooks when
  // it saves tensors for the loss.
  const at::Tensor output = at::ones({6, 8}).requires_grad_();
  CHECK(checkpointed == growth(asked, [&] { loss_of(output); }));
}

TEST_CASE("backward on another thread runs in the previous engine") {
  const Plan plan = full_plan();
  const Outcome expected = run_plain(network());
  seed_generator();
  const Network made = network().make();
  at::Tensor loss;
  {
    Recording recording(strict(plan, Schedule::kOnDemand));
    loss = loss_of(forward_with_scopes(made));
  }
  CHECK(growth(other_engine().num_executed,
               [&] { std::thread([&] { loss.backward(); }).join(); }) == 1);
  CHECK(first_difference(expected, outcome_of(made, loss)) == "");
}

TEST_CASE("a nested backward runs in the previous engine") {
  const NamedNetwork reentrant = reentrant_network(kDepth);
  const Outcome expected = run_plain(reentrant);
  const Plan plan = plan_of_blocks(trace_of(reentrant), [](int, int) { return false; });
  for (const Schedule schedule : kSchedules) {
    // One pass over the network, and kDepth + 1 nested passes in each of its two layers.
    constexpr int kPasses = 1 + 2 * (kDepth + 1);
    Outcome outcome;
    CHECK(growth(other_engine().num_executed,
                 [&] { outcome = run_engine(reentrant, plan, schedule); }) == kPasses);
    CHECK(first_difference(expected, outcome) == "");
  }
}

struct Fails : torch::autograd::Function<Fails> {
  static at::Tensor forward(AutogradContext*, const at::Tensor& x) { return x * 1.0; }
  static variable_list backward(AutogradContext*, variable_list) {
    throw std::runtime_error("backward failed");
  }
};

TEST_CASE("an exception in backward reaches the previous engine, and the caller") {
  const NamedNetwork failing = {"fails", [] {
                                  Network made = network().make();
                                  const Region first = made.layers[0];
                                  made.layers[0] = [first](const at::Tensor& x) {
                                    return Fails::apply(first(x));
                                  };
                                  return made;
                                }};
  Plan second_only = full_plan();
  second_only.regions.erase(second_only.regions.begin());
  const int before = other_engine().num_exceptions;
  CHECK_THROWS_WITH(run_engine(failing, second_only, Schedule::kOnDemand),
                    Catch::Contains("backward failed"));
  CHECK(other_engine().num_exceptions == before + 1);
  CHECK(first_difference(run_plain(network()),
                         run_engine(network(), full_plan(), Schedule::kOnDemand)) == "");
}

TEST_CASE("the previous engine creates the metadata of anomaly mode") {
  const Plan plan = full_plan();
  const torch::autograd::DetectAnomalyGuard anomaly(/*check_nan=*/false);
  CHECK(growth(other_engine().num_metadata,
               [&] { run_engine(network(), plan, Schedule::kOnDemand); }) > 0);
}

TEST_CASE(
    "a recording fails if another library has replaced the autograd engine since the first "
    "recording") {
  const Plan plan = full_plan();
  const Outcome expected = run_engine(network(), plan, Schedule::kOnDemand);
  static Engine& ours = Engine::get_default_engine();
  torch::autograd::set_default_engine_stub([]() -> Engine& { return other_engine(); });
  CHECK_THROWS_WITH(run_engine(network(), plan, Schedule::kOnDemand),
                    Catch::Contains("another library replaced the autograd engine"));
  torch::autograd::set_default_engine_stub([]() -> Engine& { return ours; });
  CHECK(first_difference(expected, run_engine(network(), plan, Schedule::kOnDemand)) == "");
}

}  // namespace
}  // namespace rematch::testing
