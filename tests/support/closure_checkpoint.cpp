#include "tests/support/closure_checkpoint.h"

#include <ATen/Context.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/clone.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "harness/engine/interception.h"

namespace rematch::testing {
namespace {

struct ClosureFrame;
struct StopRecompute {
  const ClosureFrame* frame;
};

at::Tensor cpu_generator_state() {
  at::Generator generator = at::globalContext().defaultGenerator(c10::kCPU);
  std::lock_guard<std::mutex> lock(generator.mutex());
  return generator.get_state();
}

void set_cpu_generator_state(const at::Tensor& state) {
  at::Generator generator = at::globalContext().defaultGenerator(c10::kCPU);
  std::lock_guard<std::mutex> lock(generator.mutex());
  generator.set_state(state);
}

// Sets autocast and the buffers as they were in forward, and restores them afterwards.
struct Surroundings {
  bool autocast = at::autocast::is_autocast_enabled(at::kCPU);
  std::vector<at::Tensor> contents;

  static Surroundings now(const ClosurePolicy& policy) {
    Surroundings surroundings;
    if (policy.fault == ClosureFault::kBufferTwice) return surroundings;
    for (const at::Tensor& buffer : policy.buffers) surroundings.contents.push_back(buffer.clone());
    return surroundings;
  }
  void put_back(const ClosurePolicy& policy) const {
    if (policy.fault != ClosureFault::kAutocastLost) {
      at::autocast::set_autocast_enabled(at::kCPU, autocast);
    }
    at::NoGradGuard no_grad;
    for (std::size_t i = 0; i < contents.size(); ++i) policy.buffers[i].copy_(contents[i]);
  }
};

struct ClosureFrame : std::enable_shared_from_this<ClosureFrame> {
  Region region;
  ClosurePolicy policy;
  torch::autograd::SavedVariable input;
  bool input_requires_grad = false;
  at::Tensor generator_state;
  Surroundings surroundings;
  std::map<int, std::vector<c10::IValue>> store;
  std::vector<bool> alive;  // whether each saved tensor is alive
  std::vector<at::Tensor> recomputed;
  int graph_task = -2;

  at::Tensor forward(const at::Tensor& x);
  at::Tensor unpack(int index);
  void recompute();
};

// Keeps the outputs of chosen ops in forward, and returns them in recompute.
struct StoreMode final : OpMode {
  explicit StoreMode(ClosureFrame& given, bool is_recompute)
      : frame(given), answering(is_recompute) {}

  void run(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack,
           std::size_t depth) override {
    const int index = next++;
    if (answering) {
      const auto kept = frame.store.find(index);
      if (kept != frame.store.end()) {
        stack->erase(stack->end() - static_cast<std::ptrdiff_t>(op.schema().arguments().size()),
                     stack->end());
        for (c10::IValue& value : kept->second) stack->push_back(std::move(value));
        frame.store.erase(kept);
        return;
      }
      call_next(op, keys, stack, depth);
      return;
    }
    const bool keep =
        !op.schema().is_mutable() && !returns_alias(op) && frame.policy.save(op, index);
    std::vector<const void*> input_storages;
    for (const c10::IValue& value : *stack) {
      if (value.isTensor() && value.toTensor().defined() && value.toTensor().has_storage()) {
        input_storages.push_back(value.toTensor().storage().unsafeGetStorageImpl());
      }
    }
    call_next(op, keys, stack, depth);
    if (!keep) return;
    std::vector<c10::IValue> outputs;
    for (std::size_t i = stack->size() - op.schema().returns().size(); i < stack->size(); ++i) {
      const c10::IValue& value = (*stack)[i];
      if (!value.isTensor() || !value.toTensor().defined()) {
        outputs.push_back(value);
        continue;
      }
      const void* storage = value.toTensor().storage().unsafeGetStorageImpl();
      for (const void* input : input_storages) {
        // the result is a view, although the op's schema does not declare a view
        if (input == storage) return;
      }
      outputs.emplace_back(value.toTensor().tensor_data());
    }
    frame.store[index] = std::move(outputs);
  }

  static bool returns_alias(const c10::OperatorHandle& op) {
    for (const c10::Argument& result : op.schema().returns()) {
      if (result.alias_info() != nullptr) return true;
    }
    return false;
  }

  ClosureFrame& frame;
  bool answering;
  int next = 0;
};

struct ForwardHook final : torch::autograd::SavedVariableHooks {
  explicit ForwardHook(std::shared_ptr<ClosureFrame> given) : frame(std::move(given)) {}
  ~ForwardHook() override {
    if (index < 0) return;
    frame->alive[index] = false;
    if (index < static_cast<int>(frame->recomputed.size())) frame->recomputed[index].reset();
  }
  void call_pack_hook(const at::Tensor&) override {
    index = static_cast<int>(frame->alive.size());
    frame->alive.push_back(true);
  }
  at::Tensor call_unpack_hook() override { return frame->unpack(index); }

  std::shared_ptr<ClosureFrame> frame;
  int index = -1;
};

struct RecomputeHook final : torch::autograd::SavedVariableHooks {
  explicit RecomputeHook(ClosureFrame& given) : frame(given) {}
  void call_pack_hook(const at::Tensor& tensor) override {
    saved = tensor.tensor_data();
    const std::size_t index = frame.recomputed.size();
    TORCH_CHECK(index < frame.alive.size(), "recompute saved more tensors than forward");
    frame.recomputed.push_back(frame.alive[index] ? saved : at::Tensor());
    if (frame.policy.early_stop && index + 1 == frame.alive.size()) throw StopRecompute{&frame};
  }
  at::Tensor call_unpack_hook() override { return saved; }

  ClosureFrame& frame;
  at::Tensor saved;
};

struct ForwardProvider final : SavedTensorProvider {
  explicit ForwardProvider(std::shared_ptr<ClosureFrame> given) : frame(std::move(given)) {}
  std::unique_ptr<torch::autograd::SavedVariableHooks> make() override {
    return std::make_unique<ForwardHook>(frame);
  }
  std::shared_ptr<ClosureFrame> frame;
};

struct RecomputeProvider final : SavedTensorProvider {
  explicit RecomputeProvider(ClosureFrame& given) : frame(given) {}
  std::unique_ptr<torch::autograd::SavedVariableHooks> make() override {
    return std::make_unique<RecomputeHook>(frame);
  }
  ClosureFrame& frame;
};

at::Tensor ClosureFrame::forward(const at::Tensor& x) {
  input = torch::autograd::SavedVariable(x, /*is_output=*/false);
  input_requires_grad = x.requires_grad();
  if (policy.preserve_generator) generator_state = cpu_generator_state();
  surroundings = Surroundings::now(policy);
  ForwardProvider provider(shared_from_this());
  StoreMode mode(*this, /*is_recompute=*/false);
  SavedTensorGuard save(&provider);
  OpModeGuard store_guard(&mode);
  return region(x);
}

at::Tensor ClosureFrame::unpack(int index) {
  const int task = torch::autograd::get_current_graph_task_id();
  if (task != graph_task || task < 0) {
    graph_task = task;
    recompute();
  }
  return std::move(recomputed.at(index));
}

void ClosureFrame::recompute() {
  recomputed.clear();
  at::AutoGradMode grad(true);
  at::Tensor state_now;
  if (policy.preserve_generator) {
    state_now = cpu_generator_state();
    set_cpu_generator_state(generator_state);
  }
  const Surroundings found = Surroundings::now(policy);
  surroundings.put_back(policy);
  if (policy.fault == ClosureFault::kGradientsDropped) {
    for (const at::Tensor& parameter : policy.parameters) parameter.mutable_grad().reset();
  }
  at::Tensor x = input.unpack().detach();
  x.requires_grad_(input_requires_grad);
  RecomputeProvider provider(*this);
  StoreMode mode(*this, /*is_recompute=*/true);
  try {
    SavedTensorGuard save(&provider);
    OpModeGuard store_guard(&mode);
    region(x);
  } catch (const StopRecompute& stop) {
    if (stop.frame != this) throw;
  }
  found.put_back(policy);
  if (policy.preserve_generator) set_cpu_generator_state(state_now);
  TORCH_CHECK(recomputed.size() == alive.size(), "recompute saved fewer tensors than forward");
}

}  // namespace

at::Tensor closure_checkpoint(const Region& region, const at::Tensor& input,
                              const ClosurePolicy& policy) {
  if (!at::GradMode::is_enabled()) return region(input);
  auto frame = std::make_shared<ClosureFrame>();
  frame->region = region;
  frame->policy = policy;
  return frame->forward(input);
}

}  // namespace rematch::testing
