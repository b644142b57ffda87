// Records one training step of a model as a Trace: the ops of forward, the tensors that autograd
// saves, and the order in which backward unpacks these tensors.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>

#include "policies/trace/trace.h"

namespace rematch {

// Runs `loss()` and its backward once, without checkpointing, on the device of its tensors. The
// caller fills in model, dimensions, dtype and parameter_bytes, and clears the gradients
// afterwards.
//
// On the CPU and on meta, counting allocators (harness/measure/memory.h) measure the bytes in
// backward events. Without such an allocator, the bytes are 0. On an accelerator, the bytes are
// counted from the results of ops (backward_holds.h).
Trace record_trace(const std::function<at::Tensor()>& loss);

// Like record_trace(), but the caller runs forward and backward itself, each once and on this
// thread. Run forward before end_forward(), and backward before finish().
class TraceSession {
 public:
  class Tracer;

  TraceSession();
  ~TraceSession();
  TraceSession(const TraceSession&) = delete;
  TraceSession& operator=(const TraceSession&) = delete;

  void end_forward(c10::Device device);  // `device` is the device of the loss
  // Throws std::logic_error if end_forward() was not called, or if finish() is called twice.
  Trace finish();

 private:
  struct Step;
  std::unique_ptr<Step> step_;  // null after finish()
};

}  // namespace rematch
