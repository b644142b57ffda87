// A program that takes a raw pointer to a result of a region may write through the pointer, and no
// version counter shows the write. Callers that see a pointer being taken report it here. The
// region then keeps what is written: see Note [Writes that no op made] (record.h).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace rematch {

enum class PointerUse : std::uint8_t {
  kOnce,     // one kernel is about to write through it, and is done before the tensor is read again
  kLasting,  // the program may write through it at any time: numpy(), __dlpack__, data_ptr()
};

// Call on the thread that runs forward, before anything is written through the pointer. Does
// nothing outside an open region, inside the kernel of an op, and for tensors from outside the
// region. Only OutsideCheck::kHashes detects writes to outside tensors.
//
// kOnce copies the content when the tensor, or another tensor on its storage, is read next.
// kLasting copies it also whenever it has changed since. This compares the whole content at every
// read, and on a GPU waits for the device.
void note_pointer_taken(const at::Tensor& tensor, PointerUse use);

}  // namespace rematch
