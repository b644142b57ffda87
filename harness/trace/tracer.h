// Records what one training step of a model does, as a Trace: forward ops with their values,
// storages and scopes, what autograd saves, and in which order backward asks for it.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

#include "policies/trace/trace.h"

namespace rematch {

// Runs `loss()` and its backward once, without checkpointing, on whatever device its tensors are
// (meta takes milliseconds for any size). The caller fills in model, dimensions, dtype and
// parameter_bytes. With counting allocators installed (harness/measure/memory.h), backward events
// carry bytes; otherwise they are 0. Gradients that the run left behind are the caller's to clear.
Trace record_trace(const std::function<at::Tensor()>& loss);

}  // namespace rematch
