// Tests the engine on CUDA, where backward runs on the device's own thread and random draws use the
// device's generator.
#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <c10/core/StreamGuard.h>
#include <torch/csrc/autograd/custom_function.h>

#include <optional>

#include "harness/engine/recording.h"
#include "harness/engine/stores/mover.h"
#include "harness/measure/clocks.h"
#include "harness/measure/memory.h"
#include "harness/trace/tracer.h"
#include "models/scope/scope.h"
#include "tests/support/cuda.h"
#include "tests/support/model_step.h"
#include "tests/support/schedules.h"
#include "tests/support/strict.h"

namespace rematch::testing {
namespace {

const at::Device& cuda() {
  static const at::Device device(at::kCUDA, 0);
  return device;
}

// Copies the outcome to the CPU, where bits are compared.
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
    const Checkpoint checkpoint = strict(plan, schedule);
    CHECK(first_difference(none, run(forward, parameters, &checkpoint)) == "");
  }
}

// A network on the device: two layers with one matmul each.
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

// LibTorch starts its device threads only once per process, at the first backward.
TEST_CASE("backward runs on the device's thread before and after the first recording", "[device]") {
  REMATCH_NEEDS_CUDA();
  const SmallNetwork network;
  CHECK_NOTHROW(network.train());
  const Trace trace = record_trace([&] { return network.forward(); });
  const Checkpoint full = strict(plan_for("full", trace), Schedule::kWholeRegion);
  CHECK_NOTHROW(network.train(full));
  CHECK_NOTHROW(network.train());
  CHECK_NOTHROW(network.train(full));
}

TEST_CASE("backward runs on the device's thread if a recording is made before the first backward",
          "[device]") {
  REMATCH_NEEDS_CUDA();
  const SmallNetwork network;
  const Trace trace = record_trace([&] { return network.forward(); });
  const Checkpoint full = strict(plan_for("full", trace), Schedule::kWholeRegion);
  CHECK_NOTHROW(network.train(full));
  CHECK_NOTHROW(network.train());
  CHECK_NOTHROW(network.train(full));
}

// Returns the ops of backward and their bytes. The trace counts bytes by memory tags, except on
// CUDA, whose allocator has no tags.
std::vector<std::string> backward_of(const ModelSpec& spec, const at::Device& device) {
  const auto model = make_model(spec, device);
  const Batch batch = make_data(spec, "", 1, device)->batch(0);
  const Trace trace = record_trace([&] { return model->loss(batch); });
  std::vector<std::string> lines;
  for (const BackwardEvent& event : trace.backward) {
    if (event.kind != BackwardEvent::Kind::kOp) continue;
    lines.push_back(event.op + " " + std::to_string(event.other_bytes.count) + " " +
                    std::to_string(event.gradient_bytes.count));
  }
  return lines;
}

TEST_CASE("a trace on CUDA has the same saved tensors as on the CPU", "[device]") {
  REMATCH_NEEDS_CUDA();
  install_counting_allocators();
  for (const char* preset : {"llama_small", "wan_small"}) {
    CAPTURE(preset);
    const ModelInstance small({preset, {{"layers", 2}}, "float32"});
    const std::vector<std::string> on_cpu = backward_of(small.spec, at::kCPU);
    CHECK(on_cpu.size() > 50);
    CHECK(backward_of(small.spec, cuda()) == on_cpu);
  }
}

Plan plan_offloading_products(const SmallNetwork& network) {
  Plan plan = plan_of_blocks(record_trace([&] { return network.forward(); }),
                             [](int, int) { return false; });
  for (RegionType& type : plan.types) {
    for (PlannedOp& op : type.ops) {
      if (op.name == "aten::mm") op.treatment = Treatment::kOffload;
    }
  }
  return plan;
}

// The first layer's product, 8 x 8 floats, is copied to the host and back. The last layer's product
// stays on the device.
TEST_CASE("on CUDA offloaded values use pinned memory that is reused", "[device]") {
  REMATCH_NEEDS_CUDA();
  const SmallNetwork network;
  const Plan plan = plan_offloading_products(network);
  for (const Schedule schedule : kSchedules) {
    const Checkpoint checkpoint = strict(plan, schedule);
    for (int step = 1; step <= 3; ++step) {
      CHECK_NOTHROW(network.train(checkpoint));
      const StoreUse host = checkpoint.host_memory();
      CHECK(host.allocations == 1);
      CHECK(host.in_use == Bytes{});
      CHECK(host.copied_out == Bytes{step * 8 * 8 * 4});
      CHECK(host.copied_back == host.copied_out);
    }
  }
}

// Records the streams on which copies run, and the streams that wait for them.
struct ToldMoves final : MoveObserver {
  void around(Move move, c10::Stream stream, const std::function<void()>& start) override {
    (move == Move::kCopy ? copies : joins).push_back(stream);
    timer.around(move, stream, start);
  }
  std::vector<c10::Stream> copies;
  std::vector<c10::Stream> joins;
  CopyTimer timer;
};

// The first layer's product is copied to the host and back. A stream waits for each copy.
TEST_CASE(
    "on CUDA each copy is timed on the copy stream, and each wait is timed on the step's stream",
    "[device]") {
  REMATCH_NEEDS_CUDA();
  const SmallNetwork network;
  const Plan plan = plan_offloading_products(network);
  const Checkpoint checkpoint = strict(plan, Schedule::kOnDemand);
  ToldMoves told;
  checkpoint.observe_moves(&told);
  network.train(checkpoint);
  checkpoint.observe_moves(nullptr);
  const c10::Stream step = c10::impl::VirtualGuardImpl(at::kCUDA).getStream(cuda());
  REQUIRE(told.copies.size() == 2);
  CHECK(told.copies[0] == told.copies[1]);
  CHECK(told.copies[0] != step);
  REQUIRE_FALSE(told.joins.empty());
  for (const c10::Stream& join : told.joins) CHECK(join == step);
  synchronize(cuda());
  const CopyTimes times = told.timer.take();
  CHECK(times.hidden() + times.exposed() == times.copying);
  network.train(checkpoint);
  CHECK(told.copies.size() == 2);
}

const c10::Stream& side_stream() {
  static const c10::Stream stream =
      c10::impl::VirtualGuardImpl(at::kCUDA).getStreamFromGlobalPool(cuda());
  return stream;
}

// The place in a step at which an op switches to the side stream and back.
enum class Switch : std::uint8_t { kNowhere, kInForward, kInFactory, kInBackward };

// If `switches` is set, backward switches to the side stream before it reads the saved tensor.
struct Sine final : torch::autograd::Function<Sine> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x,
                            bool switches) {
    context->save_for_backward({x});
    context->saved_data["switches"] = switches;
    return at::sin(x);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    std::optional<c10::StreamGuard> elsewhere;
    if (context->saved_data["switches"].toBool()) elsewhere.emplace(side_stream());
    return {gradients[0] * at::cos(context->get_saved_variables()[0]), at::Tensor()};
  }
};

at::Tensor forward_with(Switch where) {
  const auto options = at::TensorOptions().device(cuda());
  const at::Tensor weight = at::ones({8, 8}, options).requires_grad_(true);
  at::Tensor x = at::ones({8, 8}, options);
  for (int layer = 0; layer < 2; ++layer) {
    const Scope scope("blocks", layer);
    x = at::mm(x, weight);
    std::optional<c10::StreamGuard> elsewhere;
    if (where == Switch::kInFactory) elsewhere.emplace(side_stream());
    const at::Tensor zero = at::zeros({8, 8}, options);
    elsewhere.reset();
    if (where == Switch::kInForward) elsewhere.emplace(side_stream());
    x = at::add(x, zero);
    elsewhere.reset();
    x = Sine::apply(x, where == Switch::kInBackward);
  }
  return x.sum();
}

Plan plan_of_sines() {
  return plan_for("full", record_trace([] { return forward_with(Switch::kNowhere); }));
}

TEST_CASE("a region's backward runs on the stream of its forward, whatever stream is current",
          "[device]") {
  REMATCH_NEEDS_CUDA();
  const Plan plan = plan_of_sines();
  for (const Schedule schedule : kSchedules) {
    std::optional<c10::StreamGuard> elsewhere(side_stream());
    Recording recording(strict(plan, schedule));
    const at::Tensor loss = forward_with(Switch::kNowhere);
    recording.finish();
    elsewhere.reset();
    CHECK_NOTHROW(loss.backward());
  }
}

TEST_CASE("an op on a different stream than its region is refused", "[device]") {
  REMATCH_NEEDS_CUDA();
  const Plan plan = plan_of_sines();
  const std::string side = std::to_string(side_stream().id());
  for (const auto& [where, op] : {std::pair(Switch::kInForward, "aten::add.Tensor"),
                                  std::pair(Switch::kInFactory, "aten::zeros")}) {
    Recording recording(strict(plan, Schedule::kOnDemand));
    CHECK_THROWS_WITH(
        forward_with(where),
        "region blocks.0: " + std::string(op) + " ran on stream " + side +
            " of cuda:0, but earlier ops of the region ran on stream 0 of cuda:0; "
            "recompute runs a region on one stream. Switch streams outside the region");
  }
}

TEST_CASE("recompute on a different stream than forward is refused", "[device]") {
  REMATCH_NEEDS_CUDA();
  const Plan plan = plan_of_sines();
  const std::string side = std::to_string(side_stream().id());
  for (const Schedule schedule : kSchedules) {
    Recording recording(strict(plan, schedule));
    const at::Tensor loss = forward_with(Switch::kInBackward);
    recording.finish();
    CHECK_THROWS_WITH(
        loss.backward(),
        "region blocks.1: aten::mm ran on stream 0 of cuda:0 in forward, but would be "
        "recomputed on stream " +
            side + " of cuda:0; read saved tensors on the stream that forward ran on");
  }
}

TEST_CASE("on CUDA every policy is bitwise equal to no checkpointing", "[gpu]") {
  REMATCH_NEEDS_GPU();
  at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/false);
  const std::vector<ModelCase> cases = {
      {"llama_small", {{"layers", 4}, {"dim", 64}, {"tokens", 64}}, "float32"},
      {"llama_small", {{"layers", 4}, {"dim", 64}, {"tokens", 64}}, "bfloat16"},
      {"wan_small", {{"layers", 4}, {"tokens", 64}, {"dim", 64}}, "float32"},
      {"wan_small", {{"layers", 4}, {"tokens", 64}, {"dim", 64}}, "bfloat16"}};
  for (const ModelCase& which : cases) {
    const ModelInstance on_cpu(which);  // needed only to get the model's spec
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

TEST_CASE("on CUDA dropout is repeated and the generator ends in the same state", "[gpu]") {
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
