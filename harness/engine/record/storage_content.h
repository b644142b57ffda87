// The bytes of whole storages, independent of the tensors that view them.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/StorageImpl.h>

namespace rematch {

// All bytes of a storage, as a flat tensor that shares the storage.
at::Tensor bytes_of(c10::StorageImpl& storage);

// A copy of all bytes of a storage.
at::Tensor copy_of_bytes(c10::StorageImpl& storage);

// Writes a copy back into a storage of the same size.
void restore_bytes(c10::StorageImpl& storage, const at::Tensor& bytes);

// Returns whether the storage holds exactly `bytes`. Waits for the device. Always true for device
// meta.
bool has_bytes(c10::StorageImpl& storage, const at::Tensor& bytes);

// A copy of the tensor on a copy of its storage, with its own version counter.
at::Tensor on_copied_storage(const at::Tensor& tensor);

}  // namespace rematch
