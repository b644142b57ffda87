// A program that takes a raw pointer to a result of a region may write through it, and no version
// counter tells. Who sees the pointer being taken says so here, and the region keeps what is
// written: see Note [Writes that no op made] (record.h).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace rematch {

enum class PointerUse : std::uint8_t {
  kOnce,  // a kernel is about to write through it, and has done so before the tensor is read again
  kLasting,  // the program may write through it at any time: numpy(), __dlpack__, data_ptr()
};

// Call before anything is written through the pointer, on the thread that runs forward. Does
// nothing outside of an open region, in the kernel of an op, nor for tensors from outside the
// region: what is written to those is seen by OutsideCheck::kHashes alone. Under kOnce the content
// is copied when the tensor, or another on its storage, is read next; under kLasting also whenever
// it has changed since, which compares all of it each time that it is read, and on a GPU waits for
// the device.
void note_pointer_taken(const at::Tensor& tensor, PointerUse use);

}  // namespace rematch
