#include "harness/python/program_watch.h"

#include "harness/measure/memory.h"
#include "harness/measure/step_place.h"

namespace rematch {
namespace {

bool is_counted(c10::Device device) {
  return counting_allocators_installed() || !(device.is_cpu() || device.is_meta());
}

std::vector<at::Tensor> gradients_of(const std::vector<at::Tensor>& parameters) {
  std::vector<at::Tensor> gradients;
  for (const at::Tensor& parameter : parameters) {
    if (parameter.grad().defined()) gradients.push_back(parameter.grad());
  }
  return gradients;
}

}  // namespace

void ProgramWatch::watch_memory(c10::Device device, const std::vector<at::Tensor>& parameters,
                                const std::vector<at::Tensor>& frozen) {
  if (!is_counted(device)) return;
  forget_memory_tags();
  probe_.emplace(device, parameters);
  probe_->assign(gradients_of(parameters), MemoryTag::kGradient);
  probe_->assign(frozen, MemoryTag::kFrozen);
  probe_->begin_step();
  probes_ = true;
}

// A forward ends where an op of another phase begins.
void ProgramWatch::about_to_run(const c10::OperatorHandle& /*op*/, Phase phase,
                                const torch::jit::Stack& /*stack*/) {
  if (!probes_) return;
  const bool in_forward = PhaseGuard::effective(phase) == Phase::kForward;
  const std::lock_guard lock(mutex_);
  if (in_forward_ && !in_forward) probe_->forward_done();
  if (!in_forward_ && in_forward) probe_->begin_next_forward();
  in_forward_ = in_forward;
}

void ProgramWatch::executed(const c10::OperatorHandle& op, Phase phase,
                            const torch::jit::Stack& stack) {
  counter_.executed(op, phase, stack);
  if (!probes_) return;
  const std::lock_guard lock(mutex_);
  probe_->executed(op, phase, stack);
}

void ProgramWatch::brought_back(const at::Tensor& value) {
  if (!probes_) return;
  const std::lock_guard lock(mutex_);
  probe_->brought_back(value);
}

std::optional<MemoryRecord> ProgramWatch::memory() {
  if (!probes_) return std::nullopt;
  if (in_forward_) probe_->forward_done();
  return probe_->finish_step();
}

}  // namespace rematch
