#include "harness/measure/memory_probe.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/sum.h>

#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include "tests/support/catch.h"

#include "harness/measure/step_place.h"

namespace rematch {
namespace {

// Two blocks that compute `sin(x w)` on 8 x 8 floats. Each tensor takes 256 bytes.
struct TwoBlocks {
  explicit TwoBlocks(at::Device device)
      : x(at::ones({8, 8}, device)),
        weights({at::ones({8, 8}, device).requires_grad_(),
                 at::ones({8, 8}, device).requires_grad_()}) {}

  at::Tensor loss() const {
    at::Tensor hidden = x;
    for (int index = 0; index < 2; ++index) {
      const Scope block("blocks", index);
      const Scope inner("attention");
      hidden = at::sin(at::mm(hidden, weights[static_cast<std::size_t>(index)]));
    }
    const Scope scope("loss");
    return hidden.sum();
  }

  at::Tensor x;
  std::vector<at::Tensor> weights;
};

MemoryRecord run_step(at::Device device) {
  install_counting_allocators();
  const TwoBlocks model(device);
  MemoryProbe probe(device, model.weights);
  probe.begin_step();
  const OpObserverGuard observe(&probe);
  at::Tensor loss;
  {
    const MemoryProbe::Listening scopes(probe);
    loss = model.loss();
  }
  probe.forward_done();
  loss.backward();
  {
    const PhaseGuard optimizer(Phase::kOptimizer);
    const at::NoGradGuard no_grad;
    for (const at::Tensor& weight : model.weights) weight.sub_(weight.grad());
  }
  return probe.finish_step();
}

TEST_CASE("every byte of a step is accounted for") {
  const MemoryRecord record = run_step(at::kCPU);
  REQUIRE(record.parameter == Bytes{512});
  // In each block, autograd saves the inputs of mm and sin. Block 0 keeps the output of mm (256
  // bytes); its input and the weights are older than the step. Block 1 keeps its output of mm and
  // its input, the output of block 0 (512 bytes together). The loss takes 4 bytes.
  const std::int64_t saved = 256 + 512;
  CHECK(record.after_forward->count - record.baseline->count == saved + 4);
  // The peak is in the backward of block 1, while all saved tensors are still alive. The backward
  // of sin computes cos (256 bytes), and multiplies it by the expanded gradient (256 bytes).
  // ones_like(loss) takes 4 bytes.
  CHECK(record.peak_phase == Phase::kBackward);
  CHECK(record.peak_scope == "blocks.1");
  CHECK(record.peak_allocated->count - record.baseline->count >= saved + 512);
  CHECK(record.holders_at_peak.at(Holder::kParameters) == Bytes{512});
  Bytes sum;
  for (const auto& [holder, bytes] : record.holders_at_peak) sum += bytes;
  CHECK(sum == record.peak_allocated);
  CHECK(record.peak_by_phase.count("backward.blocks.0") == 1);
  CHECK(record.peak_by_phase.count("backward.loss") == 1);
  CHECK(record.peak_by_phase.count("optimizer") == 1);
}

TEST_CASE(
    "a gradient counts as a parameter's gradient as soon as autograd stores it in the parameter") {
  const MemoryRecord record = run_step(at::kCPU);
  const MemoryTimeline& line = record.timeline.value();
  CHECK(line.phase.back() == Phase::kOptimizer);
  CHECK(line.bytes.at(Holder::kGradients).front() == 0);
  CHECK(line.bytes.at(Holder::kGradients).back() == 512);
  // Only the loss is still alive, because the caller holds it.
  CHECK(line.bytes.at(Holder::kSavedActivations).back() == 4);
}

TEST_CASE("activations that outlive forward are saved activations; the others are temporaries") {
  const MemoryTimeline line = run_step(at::kCPU).timeline.value();
  // The ops are mm, sin, mm, sin, sum. The output of the last sin is a temporary, which is freed
  // after sum.
  CHECK(line.bytes.at(Holder::kSavedActivations)[3] == 256 + 512);
  CHECK(line.bytes.at(Holder::kOther)[3] - line.bytes.at(Holder::kOther)[0] == 256);
}

TEST_CASE("a step on meta counts the same bytes as a step on the CPU at every op boundary") {
  const MemoryRecord cpu = run_step(at::kCPU);
  const MemoryRecord meta = run_step(at::kMeta);
  CHECK(meta.timeline->op_index == cpu.timeline->op_index);
  auto meta_bytes = meta.timeline->bytes;
  auto cpu_bytes = cpu.timeline->bytes;
  // kOther is not compared, because earlier tests leave bytes on one of the devices.
  meta_bytes.erase(Holder::kOther);
  cpu_bytes.erase(Holder::kOther);
  CHECK((meta_bytes == cpu_bytes));
  CHECK(meta.peak_allocated->count - meta.baseline->count ==
        cpu.peak_allocated->count - cpu.baseline->count);
  CHECK(meta.peak_scope == cpu.peak_scope);
}

// Counts its calls. Frees the gradient, like an optimizer whose step runs during backward.
struct CountedHook final : torch::autograd::PostAccumulateGradHook {
  explicit CountedHook(int* calls) : num_calls(calls) {}
  void operator()(const torch::autograd::Variable& parameter) override {
    ++*num_calls;
    parameter.mutable_grad().reset();
  }
  int* num_calls;
};

TEST_CASE(
    "a program's own gradient hook is called after the probe's hook, and outlives the probe") {
  install_counting_allocators();
  const TwoBlocks model(at::kCPU);
  int num_calls = 0;
  for (const at::Tensor& weight : model.weights) {
    torch::autograd::impl::set_post_acc_grad_hooks(weight,
                                                   std::make_unique<CountedHook>(&num_calls));
  }
  {
    MemoryProbe probe(at::kCPU, model.weights);
    probe.begin_step();
    const OpObserverGuard observe(&probe);
    const at::Tensor loss = model.loss();
    probe.forward_done();
    loss.backward();
    CHECK(num_calls == 2);
    const MemoryRecord record = probe.finish_step();
    CHECK(record.timeline->bytes.at(Holder::kGradients).back() == 0);
  }
  model.loss().backward();
  CHECK(num_calls == 4);
}

TEST_CASE("a hook that the program sets during a probe stays set after the probe") {
  install_counting_allocators();
  const TwoBlocks model(at::kCPU);
  int num_calls = 0;
  {
    const MemoryProbe probe(at::kCPU, model.weights);
    torch::autograd::impl::set_post_acc_grad_hooks(model.weights[0],
                                                   std::make_unique<CountedHook>(&num_calls));
  }
  model.loss().backward();
  CHECK(num_calls == 1);
}

TEST_CASE(
    "a second forward pass in a step starts with the bytes that the first forward pass left") {
  install_counting_allocators();
  const TwoBlocks model(at::kCPU);
  MemoryProbe probe(at::kCPU, model.weights);
  probe.begin_step();
  const OpObserverGuard observe(&probe);
  const at::Tensor first = model.loss();
  probe.forward_done();
  first.backward();
  probe.begin_next_forward();
  const at::Tensor second = model.loss();
  probe.forward_done();
  second.backward();
  const MemoryTimeline line = probe.finish_step().timeline.value();
  const std::vector<std::int64_t>& saved = line.bytes.at(Holder::kSavedActivations);
  const std::size_t num_ops = line.op_index.size() / 2;  // forward runs twice
  CHECK(saved[3] == 256 + 512);
  CHECK(saved[num_ops + 3] == saved[3] + 4);  // the caller still holds the first loss
}

// A listener that is installed before the probe's listener, and must still be called.
struct CountingListener final : ScopeListener {
  int entered = 0;
  int left = 0;
  void enter(std::string_view, std::optional<int>) override { ++entered; }
  void leave() noexcept override { ++left; }
};

TEST_CASE("the probe also forwards scopes to the previous listener") {
  install_counting_allocators();
  const TwoBlocks model(at::kCPU);
  CountingListener outer;
  scope_listener() = &outer;
  {
    MemoryProbe probe(at::kCPU, model.weights);
    probe.begin_step();
    const MemoryProbe::Listening scopes(probe);
    model.loss();
  }
  CHECK(scope_listener() == &outer);
  scope_listener() = nullptr;
  CHECK(outer.entered == 5);
  CHECK(outer.left == 5);
}

}  // namespace
}  // namespace rematch
