// The ops that a program executes between two moments, on all its threads, and what its tensors
// hold: the memory probe of a step, for programs that do not say where their forward passes end.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <atomic>
#include <mutex>
#include <optional>
#include <vector>

#include "harness/engine/interception.h"
#include "harness/measure/memory_probe.h"
#include "harness/measure/op_counter.h"
#include "policies/trace/phase.h"
#include "reports/record/point.h"

namespace rematch {

class ProgramWatch final : public OpObserver {
 public:
  // Starts to watch memory, whose tags begin anew: call it when this is the process's observer, for
  // the tags may be another watch's until then. Memory is that of `device`, where it is counted: on
  // an accelerator, and on the CPU and meta after install_counting_allocators(). `frozen` are the
  // model's weights that do not learn.
  void watch_memory(c10::Device device, const std::vector<at::Tensor>& parameters,
                    const std::vector<at::Tensor>& frozen);

  void about_to_run(const c10::OperatorHandle& op, Phase phase,
                    const torch::jit::Stack& stack) override;
  void executed(const c10::OperatorHandle& op, Phase phase,
                const torch::jit::Stack& stack) override;
  void brought_back(const at::Tensor& value) override;

  CountsRecord counts() const { return counter_.record(/*counted_steps=*/1); }
  std::optional<MemoryRecord> memory();

 private:
  std::mutex mutex_;
  OpCounter counter_;
  std::optional<MemoryProbe> probe_;
  std::atomic<bool> probes_ = false;  // the probe is ready: ops of other threads may be observed
  bool in_forward_ = true;
};

}  // namespace rematch
