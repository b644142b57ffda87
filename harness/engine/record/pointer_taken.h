// A program that takes a raw pointer to a result of a region may write through the pointer. No
// version counter shows such a write. Code that sees the program take a pointer reports it here, so
// that the region keeps the written content: see Note [Hidden writes] (record.h).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace rematch {

enum class PointerUse : std::uint8_t {
  kOnce,     // a single kernel writes through the pointer, before the tensor is read again
  kLasting,  // the program may write through the pointer at any time: numpy(), __dlpack__,
             // data_ptr()
};

// Call this on the thread that runs forward, before anything is written through the pointer. Has no
// effect outside an open region, inside the kernel of an op, and for tensors from outside the
// region. Writes to such tensors are detected only with OutsideCheck::kHashes.
//
// kOnce copies the content at the next read of the tensor, or of another tensor on its storage.
// kLasting compares the whole content at every read, and copies the content if it has changed. On a
// GPU, each comparison waits for the device.
void note_pointer_taken(const at::Tensor& tensor, PointerUse use);

}  // namespace rematch
