// Tests which values stay on the device, which values are moved to the host, and which plans are
// rejected. Also tests that host memory is reused.
#include <ATen/Functions.h>
#include <ATen/Parallel.h>

#include <optional>

#include "harness/measure/memory.h"
#include "models/scope/scope.h"
#include "policies/predict/region/trace_index.h"
#include "policies/predict/step/step.h"
#include "policies/predict/step/stored.h"
#include "tests/support/catch.h"
#include "tests/support/model_step.h"
#include "tests/support/networks.h"
#include "tests/support/random_plan.h"
#include "tests/support/schedules.h"
#include "tests/support/seeds.h"
#include "tests/support/step_meter.h"
#include "tests/support/strict.h"

namespace rematch::testing {
namespace {

using Catch::Contains;

constexpr Bytes kSquare{8 * 8 * 4};
constexpr std::uint32_t kSeeds = 20;

void prepare_process() {
  install_counting_allocators();
  at::set_num_threads(1);
}

// Returns a network of three layers that compute tanh((2 x) w) on tensors of 8 x 8. Autograd saves
// 2 x and the result of tanh of each layer.
NamedNetwork three_layers() {
  return {"three layers", [] {
            Network network;
            network.input = at::ones({8, 8}).requires_grad_();
            for (int layer = 0; layer < 3; ++layer) {
              const at::Tensor w = at::full({8, 8}, 0.1).requires_grad_();
              network.parameters.push_back(w);
              network.layers.push_back(
                  [w](const at::Tensor& x) { return at::tanh(at::mm(at::mul(x, 2.0), w)); });
            }
            return network;
          }};
}

// Returns a plan that offloads the results of all ops with this name.
Plan plan_offloading(const Trace& trace, const std::string& name) {
  Plan plan = plan_of_blocks(trace, [](int, int) { return false; });
  for (RegionType& type : plan.types) {
    for (PlannedOp& op : type.ops) {
      if (op.name == name) op.treatment = Treatment::kOffload;
    }
  }
  return plan;
}

at::Tensor forward_of(const Network& network, const Checkpoint& checkpoint) {
  Recording recording(checkpoint);
  at::Tensor loss = loss_of(forward_with_scopes(network));
  recording.finish();
  return loss;
}

// The results of the first two layers are copied to the host and back once each. The last layer's
// result stays on the device. At the end, the host is empty.
TEST_CASE("an offloaded result takes no device memory until backward") {
  prepare_process();
  const NamedNetwork named = three_layers();
  const Trace trace = trace_of(named);
  const Plan offload = plan_offloading(trace, "aten::mul.Scalar");
  Plan save = offload;
  for (RegionType& type : save.types) {
    for (PlannedOp& op : type.ops) {
      if (op.treatment == Treatment::kOffload) op.treatment = Treatment::kSave;
    }
  }
  for (const Schedule schedule : kSchedules) {
    const Checkpoint saving = strict(save, schedule);
    const Checkpoint offloading = strict(offload, schedule);
    const Network network = named.make();
    const std::int64_t before = cpu_bytes();
    const std::int64_t saved = [&] {
      const at::Tensor loss = forward_of(network, saving);
      return cpu_bytes() - before;
    }();
    const at::Tensor loss = forward_of(network, offloading);
    CHECK(cpu_bytes() - before == saved - 2 * kSquare.count);
    CHECK(offloading.host_memory().in_use == Bytes{2 * kSquare.count});
    loss.backward();
    const StoreUse host = offloading.host_memory();
    CHECK(host.in_use == Bytes{});
    CHECK(host.peak == Bytes{2 * kSquare.count});
    CHECK(host.copied_out == host.peak);
    CHECK(host.copied_back == host.peak);
    CHECK(host.allocations == 2);
    CHECK(first_difference(run_plain(named), run_engine(named, offload, schedule)) == "");
  }
}

TEST_CASE("a dropped step frees its host memory for the next step") {
  prepare_process();
  const NamedNetwork named = three_layers();
  const Checkpoint checkpoint =
      strict(plan_offloading(trace_of(named), "aten::mul.Scalar"), Schedule::kOnDemand);
  const Network network = named.make();
  for (int step = 0; step < 3; ++step) {
    forward_of(network, checkpoint);
    CHECK(checkpoint.host_memory().in_use == Bytes{});
    CHECK(checkpoint.host_memory().allocations == 2);
  }
  CHECK(checkpoint.host_memory().copied_out == Bytes{6 * kSquare.count});
  CHECK(checkpoint.host_memory().copied_back == Bytes{});
  checkpoint.restart_host_counts();
  CHECK(checkpoint.host_memory().copied_out == Bytes{});
  CHECK(checkpoint.host_memory().peak == Bytes{});
}

// The input x of a layer is the result of the previous layer. The first layer's input is the batch,
// which is not offloaded.
TEST_CASE("inputs of regions are kept on the host") {
  prepare_process();
  const NamedNetwork named = three_layers();
  const Trace trace = trace_of(named);
  Plan plan = plan_of_blocks(trace, [](int, int) { return false; });
  const std::vector<OpRange> ranges = region_ranges(trace, plan);
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    plan.types[i].stored_inputs[Store::kHost] =
        movable_inputs(trace, make_region_graph(trace, ranges[i]));
    CHECK(plan.types[i].stored_inputs[Store::kHost].size() == (i == 0 ? 0 : 1));
  }
  for (const Schedule schedule : kSchedules) {
    const Checkpoint checkpoint = strict(plan, schedule);
    const Network network = named.make();
    const at::Tensor loss = forward_of(network, checkpoint);
    // Only the second layer's input is on the host. The first layer's input is the batch, and the
    // last layer's input stays on the device.
    CHECK(checkpoint.host_memory().in_use == kSquare);
    loss.backward();
    CHECK(checkpoint.host_memory().copied_back == kSquare);
    CHECK(checkpoint.host_memory().in_use == Bytes{});
    CHECK(first_difference(run_plain(named), run_engine(named, plan, schedule)) == "");
  }
}

// The test overwrites an offloaded value after its region has ended. Recompute does not use the
// host copy, and autograd detects that its saved tensor was overwritten. If the value is an input,
// it cannot be recomputed, so the write is rejected.
TEST_CASE("the host copy of an overwritten value or input is not used") {
  prepare_process();
  at::Tensor exposed;  // receives a result of the second layer
  NamedNetwork named = three_layers();
  const auto make = named.make;
  named.make = [&exposed, make] {
    Network network = make();
    const at::Tensor w = network.parameters[1];
    network.layers[1] = [&exposed, w](const at::Tensor& x) {
      exposed = at::mul(x, 2.0);
      return at::add(at::tanh(at::mm(exposed, w)), at::tanh(exposed));
    };
    return network;
  };
  const Trace trace = trace_of(named);
  const Checkpoint checkpoint =
      strict(plan_offloading(trace, "aten::mul.Scalar"), Schedule::kOnDemand);
  const Network network = named.make();
  at::Tensor loss = forward_of(network, checkpoint);
  exposed.detach().fill_(7);
  CHECK_THROWS_WITH(loss.backward(), Contains("modified by an in-place op"));

  Plan plan = plan_of_blocks(trace, [](int, int) { return false; });
  const std::vector<OpRange> ranges = region_ranges(trace, plan);
  plan.types[1].stored_inputs[Store::kHost] =
      movable_inputs(trace, make_region_graph(trace, ranges[1]));
  REQUIRE(plan.types[1].stored_inputs[Store::kHost].size() == 1);
  const Checkpoint of_inputs = strict(plan, Schedule::kOnDemand);
  at::Tensor input;
  {
    Recording recording(of_inputs);
    at::Tensor x = network.input;
    for (int layer = 0; layer < 3; ++layer) {
      if (layer == 1) input = x.detach();
      const Scope block("blocks", layer);
      x = network.layers[static_cast<std::size_t>(layer)](x);
    }
    loss = loss_of(x);
    recording.finish();
  }
  input.fill_(7);
  CHECK_THROWS_WITH(loss.backward(),
                    Contains("region blocks.1: float [8, 8], an input that the plan "
                             "offloads, was changed in place"));
}

enum class Backward : std::uint8_t { kOnce, kTwice };

// Runs one step under the checkpoint. With Backward::kTwice, runs backward twice over the same
// graph and returns the gradients of the second backward.
Outcome train(const NamedNetwork& named, const Checkpoint* checkpoint, Backward backward) {
  seed_generator();
  const Network network = named.make();
  std::optional<Recording> recording;
  if (checkpoint != nullptr) recording.emplace(*checkpoint);
  const at::Tensor loss = loss_of(forward_with_scopes(network));
  if (recording.has_value()) recording->finish();
  if (backward == Backward::kTwice) {
    loss.backward({}, /*retain_graph=*/true);
    for (const at::Tensor& parameter : network.parameters) parameter.mutable_grad().reset();
  }
  loss.backward();
  return outcome_of(network, loss);
}

// Random plans keep, recompute or offload each value, and may offload inputs. After one or two
// backwards, results must be bit-identical to those of a run without a plan, and the host must be
// empty. Only the first step may allocate host memory.
TEST_CASE("networks with hazards under random offloading plans are bitwise equal to the plain run",
          "[property]") {
  prepare_process();
  int num_runs = 0;
  int num_moved = 0;
  for (const NamedNetwork& named : hazard_networks()) {
    const Trace trace = trace_of(named);
    for (const Backward backward : {Backward::kOnce, Backward::kTwice}) {
      const Outcome none = train(named, nullptr, backward);
      for (std::uint32_t seed = 0; seed < num_seeds(kSeeds); ++seed) {
        const Plan plan = random_offload_plan(trace, seed);
        for (const Schedule schedule : kSchedules) {
          CAPTURE(named.name, seed, to_string(schedule), backward == Backward::kTwice);
          const Checkpoint checkpoint = strict(plan, schedule);
          CHECK(first_difference(none, train(named, &checkpoint, backward)) == "");
          const StoreUse first = checkpoint.host_memory();
          CHECK(first.in_use == Bytes{});
          CHECK(first_difference(none, train(named, &checkpoint, backward)) == "");
          CHECK(checkpoint.host_memory().allocations == first.allocations);
          CHECK(checkpoint.host_memory().in_use == Bytes{});
          num_runs += 2;
          num_moved += first.copied_back.count > 0;
        }
      }
    }
  }
  CHECK(num_runs >= 1000);
  CHECK(num_moved > num_runs / 50);
}

// Runs with real tensors on the CPU. Device and host bytes must equal the simulator's bytes.
TEST_CASE("models that offload hold the predicted bytes", "[property]") {
  for (const ModelCase& which :
       {ModelCase{"llama_small", {{"layers", 4}}}, ModelCase{"wan_small", {{"layers", 4}}},
        ModelCase{"ltx_small", {{"layers", 4}}}, ModelCase{"moe_small", {{"layers", 4}}}}) {
    ModelInstance instance(which);
    const Trace trace = instance.trace();
    StepSimulator simulator(trace, OptimizerKind::kNothing);
    const ModelStep none = run_step(instance, nullptr);
    for (std::uint32_t seed = 0; seed < num_seeds(6); ++seed) {
      const Plan plan = random_offload_plan(trace, seed);
      for (const Schedule schedule : kSchedules) {
        CAPTURE(which.preset, seed, to_string(schedule));
        const Checkpoint checkpoint = strict(plan, schedule);
        for (const NamedTensor& parameter : instance.model->parameters()) {
          parameter.tensor.mutable_grad().reset();
        }
        const ModelStep step = run_step(instance, &checkpoint);
        CHECK(first_difference(step.outcome, none.outcome) == "");
        const StepPrediction predicted = simulator.simulate(plan, schedule);
        CHECK(step.after_forward_bytes == (predicted.after_forward - predicted.before).count);
        CHECK(step.peak_bytes == (predicted.peak_bytes() - predicted.before).count);
        const StoreUse host = checkpoint.host_memory();
        CHECK(host.peak == predicted.host.peak);
        CHECK(host.copied_out == predicted.host.copied_out);
        CHECK(host.copied_back == predicted.host.copied_back);
        CHECK(host.in_use == Bytes{});
      }
    }
  }
}

}  // namespace
}  // namespace rematch::testing
