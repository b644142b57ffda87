// The bytes of whole storages, whatever tensors view them.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/StorageImpl.h>

namespace rematch {

// All bytes of a storage, as a flat tensor on it.
at::Tensor bytes_of(c10::StorageImpl& storage);

// A copy of them.
at::Tensor copy_of_bytes(c10::StorageImpl& storage);

// Writes a copy back, into a storage of the same size.
void restore_bytes(c10::StorageImpl& storage, const at::Tensor& bytes);

// Whether the storage holds what was copied. Waits for the device.
bool has_bytes(c10::StorageImpl& storage, const at::Tensor& bytes);

// The tensor on a copy of its storage, with a version counter of its own.
at::Tensor on_copied_storage(const at::Tensor& tensor);

}  // namespace rematch
