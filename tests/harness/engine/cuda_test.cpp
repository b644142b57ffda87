// The engine on CUDA: backward runs on the device's own thread, and draws come from the device's
// generator.
#include <ATen/Context.h>
#include <ATen/Functions.h>

#include "harness/engine/recording.h"
#include "harness/trace/tracer.h"
#include "models/scope/scope.h"
#include "tests/support/cuda.h"
#include "tests/support/model_step.h"
#include "tests/support/schedules.h"

namespace rematch::testing {
namespace {

const at::Device& cuda() {
  static const at::Device device(at::kCUDA, 0);
  return device;
}

// On the CPU, where bits are compared.
Outcome outcome_on_cpu(const at::Tensor& loss, const std::vector<at::Tensor>& parameters) {
  Outcome outcome{.loss = loss.detach().cpu()};
  for (const at::Tensor& parameter : parameters) {
    outcome.gradients.push_back(parameter.grad().cpu());
    parameter.mutable_grad().reset();
  }
  outcome.generator_state = at::globalContext().defaultGenerator(cuda()).get_state();
  return outcome;
}

Outcome run(const std::function<at::Tensor()>& forward, const std::vector<at::Tensor>& parameters,
            const Checkpoint* checkpoint) {
  at::manual_seed(5);
  at::Tensor loss;
  if (checkpoint != nullptr) {
    Recording recording(*checkpoint);
    loss = forward();
    recording.finish();
  } else {
    loss = forward();
  }
  loss.backward();
  return outcome_on_cpu(loss, parameters);
}

void check_plan(const std::function<at::Tensor()>& forward,
                const std::vector<at::Tensor>& parameters, const Plan& plan) {
  const Outcome none = run(forward, parameters, nullptr);
  for (const Schedule schedule : kSchedules) {
    CAPTURE(to_string(schedule));
    const Checkpoint checkpoint(plan, schedule);
    CHECK(first_difference(none, run(forward, parameters, &checkpoint)) == "");
  }
}

// Two layers of a matmul each, on the device.
class SmallNetwork {
 public:
  at::Tensor forward() const {
    at::Tensor x = input_;
    for (int layer = 0; layer < 2; ++layer) {
      const Scope scope("blocks", layer);
      x = at::tanh(at::mm(x, weight_));
    }
    return x.sum();
  }
  void train() const { forward().backward(); }
  void train(const Checkpoint& checkpoint) const {
    Recording recording(checkpoint);
    const at::Tensor loss = forward();
    recording.finish();
    loss.backward();
  }

 private:
  at::Tensor input_ = at::ones({8, 8}, at::TensorOptions().device(cuda()));
  at::Tensor weight_ =
      at::ones({8, 8}, at::TensorOptions().device(cuda())).div(8).requires_grad_(true);
};

// LibTorch starts its threads for the devices once, at the first backward of the process.
TEST_CASE("backward runs on the device's thread before a first recording and after it",
          "[device]") {
  REMATCH_NEEDS_CUDA();
  const SmallNetwork network;
  CHECK_NOTHROW(network.train());
  const Trace trace = record_trace([&] { return network.forward(); });
  const Checkpoint full(plan_for("full", trace), Schedule::kWholeRegion);
  CHECK_NOTHROW(network.train(full));
  CHECK_NOTHROW(network.train());
  CHECK_NOTHROW(network.train(full));
}

TEST_CASE("backward runs on the device's thread where a recording comes first", "[device]") {
  REMATCH_NEEDS_CUDA();
  const SmallNetwork network;
  const Trace trace = record_trace([&] { return network.forward(); });
  const Checkpoint full(plan_for("full", trace), Schedule::kWholeRegion);
  CHECK_NOTHROW(network.train(full));
  CHECK_NOTHROW(network.train());
  CHECK_NOTHROW(network.train(full));
}

// The product and tanh of two layers, of which the last keeps its own: 8 x 8 floats each.
TEST_CASE("on CUDA offloaded values go through pinned memory that is used again", "[device]") {
  REMATCH_NEEDS_CUDA();
  const SmallNetwork network;
  Plan plan = plan_of_blocks(record_trace([&] { return network.forward(); }),
                             [](int, int) { return false; });
  for (RegionType& type : plan.types) {
    for (PlannedOp& op : type.ops) {
      if (op.name == "aten::mm") op.treatment = Treatment::kOffload;
    }
  }
  for (const Schedule schedule : kSchedules) {
    const Checkpoint checkpoint(plan, schedule);
    for (int step = 1; step <= 3; ++step) {
      CHECK_NOTHROW(network.train(checkpoint));
      const HostMemory host = checkpoint.host_memory();
      CHECK(host.allocations == 1);
      CHECK(host.in_use == Bytes{});
      CHECK(host.copied_out == Bytes{step * 8 * 8 * 4});
      CHECK(host.copied_back == host.copied_out);
    }
  }
}

TEST_CASE("on CUDA every policy has the bits of no checkpointing", "[gpu]") {
  REMATCH_NEEDS_GPU();
  at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/false);
  const std::vector<ModelCase> cases = {
      {"llama_small", {{"layers", 4}, {"dim", 64}, {"tokens", 64}}, "float32"},
      {"llama_small", {{"layers", 4}, {"dim", 64}, {"tokens", 64}}, "bfloat16"},
      {"wan_small", {{"layers", 4}, {"tokens", 64}, {"dim", 64}}, "float32"},
      {"wan_small", {{"layers", 4}, {"tokens", 64}, {"dim", 64}}, "bfloat16"}};
  for (const ModelCase& which : cases) {
    const ModelInstance on_cpu(which);  // for its spec
    const auto model = make_model(on_cpu.spec, cuda());
    const Batch batch = make_data(on_cpu.spec, "", 1, cuda())->batch(0);
    const auto forward = [&] { return model->loss(batch); };
    std::vector<at::Tensor> parameters;
    for (const NamedTensor& parameter : model->parameters()) parameters.push_back(parameter.tensor);
    const Trace trace = record_trace(forward);
    for (const at::Tensor& parameter : parameters) parameter.mutable_grad().reset();
    for (const char* policy : {"full", "full_nostop", "nth_first(2)", "attn_only", "save_mm",
                               "save_compute", "segments(2)", "root"}) {
      CAPTURE(which.preset, which.dtype, policy);
      check_plan(forward, parameters, plan_for(policy, trace));
    }
  }
}

TEST_CASE("on CUDA dropout is drawn again as it was and the generator ends where it would",
          "[gpu]") {
  REMATCH_NEEDS_GPU();
  const auto options = at::TensorOptions().device(cuda());
  const at::Tensor weight = at::ones({64, 64}, options).div(64).requires_grad_(true);
  const at::Tensor input = at::ones({32, 64}, options);
  const auto forward = [&] {
    at::Tensor x = input;
    for (int layer = 0; layer < 3; ++layer) {
      const Scope scope("blocks", layer);
      x = at::dropout(at::tanh(at::mm(x, weight)), 0.3, /*train=*/true);
    }
    return x.sum();
  };
  at::manual_seed(5);
  const Trace trace = record_trace(forward);
  weight.mutable_grad().reset();
  check_plan(forward, {weight}, plan_for("full", trace));
}

}  // namespace
}  // namespace rematch::testing
