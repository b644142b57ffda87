#include "harness/measure/memory_probe.h"

#include <ATen/core/function_schema.h>

#include <algorithm>

#include "harness/engine/record/wrapped_tensor.h"
#include "harness/measure/step_place.h"

namespace rematch {
namespace {

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

}  // namespace

// Tags the memory of a parameter's gradient as kGradient after autograd has accumulated the
// gradient.
MemoryProbe::MemoryProbe(at::Device device, const std::vector<at::Tensor>& parameters)
    : memory_(device), gradient_hooks_(parameters, [this](const at::Tensor& parameter) {
        if (parameter.grad().defined()) assign({parameter.grad()}, MemoryTag::kGradient);
      }) {
  assign(parameters, MemoryTag::kParameter);
}

void MemoryProbe::assign(const std::vector<at::Tensor>& tensors, MemoryTag tag) {
  for (const at::Tensor& tensor : tensors) {
    const at::Tensor held = tensor_with_data(tensor);
    if (held.has_storage()) memory_.tag(held.storage(), tag);
  }
}

void MemoryProbe::begin_step() {
  place_.begin_step();
  born_.clear();
  samples_ = {};
  first_of_forward_ = 0;
  saved_before_ = {};
  const MemorySample before = memory_.sample();
  samples_.baseline = previous_total_ = before.total;
  samples_.baseline_requested = before.requested;
  memory_.reset_peak();
}

void MemoryProbe::begin_next_forward() {
  first_of_forward_ = samples_.boundaries.size();
  saved_before_ = memory_.sample().at(MemoryTag::kForward);
}

// Until forward ends, temporaries of forward cannot be distinguished from saved activations.
void MemoryProbe::forward_done() {
  samples_.after_forward = memory_.sample().total;
  std::vector<BoundarySample>& boundaries = samples_.boundaries;
  std::vector<Bytes> born_at(boundaries.size());
  for (const Born& born : born_) {
    if (!born.storage.expired()) born_at[born.boundary] += born.bytes;
  }
  Bytes saved = saved_before_;
  for (std::size_t index = first_of_forward_; index < boundaries.size(); ++index) {
    saved += born_at[index];
    boundaries[index].saved = std::min(saved, boundaries[index].memory.at(MemoryTag::kForward));
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
  // Reads the reserved peak before reset_peak() clears it. An op that ran out of memory may have
  // emptied the cache, so the current figure could be lower.
  samples_.peak_reserved = std::max(samples_.peak_reserved, memory_.peak_reserved());
  memory_.reset_peak();
}

void MemoryProbe::tag_results(const c10::OperatorHandle& op, Phase phase,
                              const torch::jit::Stack& stack) {
  const MemoryTag tag = tag_of(phase);
  fresh_results_.visit(op, stack, [&](const at::Tensor& result) { tag_result(result, tag); });
}

void MemoryProbe::tag_result(const at::Tensor& result, MemoryTag tag) {
  const c10::Storage& storage = result.storage();
  const Bytes moved = memory_.tag_if_other(storage, tag);
  if (tag == MemoryTag::kForward && moved.count > 0) {
    born_.push_back({storage.getWeakStorageImpl(), samples_.boundaries.size(), moved});
  }
}

}  // namespace rematch
