// Finds the stream that an op runs on, which is the current stream of its device. Only CUDA has
// several streams. LibTorch's device guard returns the current stream, so no CUDA header is needed.
#pragma once

#include <ATen/core/stack.h>
#include <c10/core/DispatchKeySet.h>
#include <c10/core/Stream.h>

#include <optional>
#include <string>

#include "harness/engine/record/op_facts.h"

namespace rematch {

// Returns whether the op may run on a stream. This quick check may also return true for an op on a
// device without streams. Ops on fake tensors have the Python key, and have no stream even if the
// tensor's device is CUDA.
inline bool may_have_stream(const OpFacts& facts, c10::DispatchKeySet keys) {
  return keys.has_backend(c10::BackendComponent::CUDABit) ||
         (facts.device_argument.has_value() && !keys.has(c10::DispatchKey::Python));
}

// Returns nothing for an op on a device without streams. `stack` ends with the op's arguments.
std::optional<c10::Stream> stream_of(const OpFacts& facts, const torch::jit::Stack& stack);

// The current stream of `device`, which must have streams.
c10::Stream current_stream(c10::Device device);

// Returns a text such as "stream 3 of cuda:0", for messages.
std::string describe_stream(const c10::Stream& stream);

}  // namespace rematch
