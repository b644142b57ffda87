// Records what one training step of a model does, as a Trace: forward ops with their values,
// storages and scopes, what autograd saves, and in which order backward asks for it.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>

#include "policies/trace/trace.h"

namespace rematch {

// Runs `loss()` and its backward once, without checkpointing, on whatever device its tensors are
// (meta takes milliseconds for any size). The caller fills in model, dimensions, dtype and
// parameter_bytes. Backward events carry bytes: on the CPU and meta with counting allocators
// (harness/measure/memory.h), and 0 without. Gradients that the run left behind are the caller's to
// clear.
Trace record_trace(const std::function<at::Tensor()>& loss);

// The same for a caller who runs forward and backward, each once and on this thread: forward from
// here to end_forward(), then backward of its loss, then finish().
class TraceSession {
 public:
  class Tracer;

  TraceSession();
  ~TraceSession();
  TraceSession(const TraceSession&) = delete;
  TraceSession& operator=(const TraceSession&) = delete;

  void end_forward(c10::Device device);  // the loss's
  // Throws std::logic_error before end_forward() and when called twice.
  Trace finish();

 private:
  struct Step;
  std::unique_ptr<Step> step_;  // null: finished
};

}  // namespace rematch
