// Records what one training step of a model does, as a Trace: forward ops with their values,
// storages and scopes, what autograd saves, and the order in which backward demands it.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>

#include "policies/trace/trace.h"

namespace rematch {

// Runs `loss()` and its backward once, without checkpointing, on the device of its tensors. On meta
// this takes milliseconds for any size. The caller fills in model, dimensions, dtype and
// parameter_bytes. Backward events carry bytes. On the CPU and on meta they need counting
// allocators (harness/measure/memory.h), and are 0 without. On an accelerator they count results of
// ops (backward_holds.h). The caller clears the gradients that the run leaves behind.
Trace record_trace(const std::function<at::Tensor()>& loss);

// Does the same for a caller that runs forward and backward itself, each once and on this thread.
// Run forward before end_forward(), and the backward of its loss before finish().
class TraceSession {
 public:
  class Tracer;

  TraceSession();
  ~TraceSession();
  TraceSession(const TraceSession&) = delete;
  TraceSession& operator=(const TraceSession&) = delete;

  void end_forward(c10::Device device);  // of the loss
  // Throws std::logic_error before end_forward() and if called twice.
  Trace finish();

 private:
  struct Step;
  std::unique_ptr<Step> step_;  // null: finished
};

}  // namespace rematch
