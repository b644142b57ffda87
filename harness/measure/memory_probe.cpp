#include "harness/measure/memory_probe.h"

#include <ATen/core/function_schema.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>

#include "harness/measure/phase_guard.h"

namespace rematch {
namespace {

// Storage that autograd accumulates into a parameter's gradient becomes the gradient's.
struct TagGradient final : torch::autograd::PostAccumulateGradHook {
  explicit TagGradient(DeviceMemory* device_memory) : memory(device_memory) {}
  void operator()(const torch::autograd::Variable& parameter) override {
    const at::Tensor& gradient = parameter.grad();
    if (gradient.defined() && gradient.has_storage()) {
      memory->tag(gradient.storage(), MemoryTag::kGradient);
    }
  }
  DeviceMemory* memory;  // the probe's, which takes its hooks along when it goes
};

MemoryTag tag_of(Phase phase) {
  switch (phase) {
    case Phase::kForward:
      return MemoryTag::kForward;
    case Phase::kRecompute:
      return MemoryTag::kRecompute;
    case Phase::kBackward:
      return MemoryTag::kBackward;
    case Phase::kOptimizer:
      return MemoryTag::kOptimizer;
  }
  return MemoryTag::kOther;
}

std::vector<bool> fresh_results_of(const c10::FunctionSchema& schema) {
  std::vector<bool> fresh;
  for (const c10::Argument& result : schema.returns()) {
    fresh.push_back(result.alias_info() == nullptr);
  }
  return fresh;
}

}  // namespace

MemoryProbe::MemoryProbe(at::Device device, const std::vector<at::Tensor>& parameters)
    : memory_(device), parameters_(parameters) {
  for (const at::Tensor& parameter : parameters_) {
    memory_.tag(parameter.storage(), MemoryTag::kParameter);
    torch::autograd::impl::set_post_acc_grad_hooks(parameter,
                                                   std::make_unique<TagGradient>(&memory_));
  }
}

MemoryProbe::~MemoryProbe() {
  for (const at::Tensor& parameter : parameters_) {
    torch::autograd::impl::set_post_acc_grad_hooks(parameter, nullptr);
  }
}

void MemoryProbe::assign(const std::vector<at::Tensor>& tensors, MemoryTag tag) {
  for (const at::Tensor& tensor : tensors) memory_.tag(tensor.storage(), tag);
}

void MemoryProbe::begin_step() {
  place_.begin_step();
  born_.clear();
  samples_ = {};
  const MemorySample before = memory_.sample();
  samples_.baseline = previous_total_ = before.total;
  samples_.baseline_requested = before.requested;
  memory_.reset_peak();
}

// Only here is it known which bytes born in forward were temporaries.
void MemoryProbe::forward_done() {
  samples_.after_forward = memory_.sample().total;
  std::vector<BoundarySample>& boundaries = samples_.boundaries;
  std::vector<Bytes> born_at(boundaries.size());
  for (const Born& born : born_) {
    if (!born.storage.expired()) born_at[born.boundary] += born.bytes;
  }
  Bytes saved;
  for (std::size_t index = 0; index < boundaries.size(); ++index) {
    saved += born_at[index];
    boundaries[index].saved = saved;
  }
  born_.clear();
  place_.forward_done();
}

MemoryRecord MemoryProbe::finish_step() {
  samples_.places = place_.names();
  return summarize(samples_);
}

void MemoryProbe::brought_back(const at::Tensor& value) {
  memory_.tag(value.storage(), MemoryTag::kForward);
}

void MemoryProbe::executed(const c10::OperatorHandle& op, Phase observed,
                           const torch::jit::Stack& stack) {
  const Phase phase = PhaseGuard::effective(observed);
  tag_results(op, phase, stack);
  BoundarySample boundary;
  boundary.memory = memory_.sample();
  boundary.phase = phase;
  boundary.place = place_.of(phase);
  if (phase != Phase::kForward) boundary.saved = boundary.memory.at(MemoryTag::kForward);
  const Bytes total = boundary.memory.total;
  boundary.transient = std::max(Bytes{}, memory_.peak() - std::max(previous_total_, total));
  previous_total_ = total;
  samples_.boundaries.push_back(std::move(boundary));
  // Resetting forgets it: an op that ran out gave the cache back before it went on.
  samples_.peak_reserved = std::max(samples_.peak_reserved, memory_.peak_reserved());
  memory_.reset_peak();
}

void MemoryProbe::tag_results(const c10::OperatorHandle& op, Phase phase,
                              const torch::jit::Stack& stack) {
  std::vector<bool>& fresh = fresh_results_[&op.schema()];
  if (fresh.empty()) fresh = fresh_results_of(op.schema());
  const MemoryTag tag = tag_of(phase);
  for (std::size_t index = 0; index < fresh.size(); ++index) {
    if (!fresh[index]) continue;
    const c10::IValue& result = stack[stack.size() - fresh.size() + index];
    if (result.isTensor()) {
      tag_result(result.toTensor(), tag);
    } else if (result.isTensorList()) {
      for (const at::Tensor& tensor : result.toTensorVector()) tag_result(tensor, tag);
    }
  }
}

void MemoryProbe::tag_result(const at::Tensor& result, MemoryTag tag) {
  if (!result.defined() || !result.has_storage()) return;
  const c10::Storage& storage = result.storage();
  const Bytes moved = memory_.tag_if_other(storage, tag);
  if (tag == MemoryTag::kForward && moved.count > 0) {
    born_.push_back({storage.getWeakStorageImpl(), samples_.boundaries.size(), moved});
  }
}

}  // namespace rematch
