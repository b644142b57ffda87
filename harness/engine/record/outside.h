// The state of an outside tensor when the record first saw it, and the check in backward that the
// tensor is unchanged.
//
// Note [Outside tensors] The record holds references to tensors from outside the region, not
// copies. A change between forward and backward would therefore change the gradients. Two kinds of
// change are detected at no cost. A write changes the version counter. Replaced data (set_data,
// x.data = y) changes the storage or the offset. A write through .data or a raw pointer changes
// none of these, so only OutsideCheck::kHashes detects it. Sharded training frees the memory of a
// parameter's storage and fills it again. The engine assumes that the new content equals the old
// content. The memory address may differ, so addresses are not compared.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/intrusive_ptr.h>

#include <cstdint>
#include <vector>

#include "harness/engine/record/wrapped_tensor.h"
#include "harness/engine/recording.h"

namespace rematch {

struct OutsideTensor {
  std::int32_t value = 0;     // index of the record's value that holds the tensor
  std::uint32_t version = 0;  // value of the tensor's version counter
  c10::weak_intrusive_ptr<c10::StorageImpl>
      storage;  // a weak reference prevents reuse of the address
  std::int64_t storage_offset = 0;
  // The user's tensor, which may have been freed. The record itself may hold a detached copy of it.
  c10::weak_intrusive_ptr<c10::TensorImpl> original;
  std::uint64_t hash = 0;  // hash of the content, only under OutsideCheck::kHashes
  bool side_written =
      false;  // whether an op of the region wrote to the tensor: see Note [Side writes]
};

// `held` is the tensor in the record: `tensor` itself, or a copy without its graph.
OutsideTensor outside_tensor(const at::Tensor& tensor, const at::Tensor& held);

// Call this after `held` has taken the place of the tensor that the record held. `held` must have
// the same content, on another storage.
void exchange_held(OutsideTensor& outside, const at::Tensor& held);

inline constexpr const char* kChangedInPlace = "changed in place";

// Returns how the tensor has changed since the record first saw it, for error messages. Returns
// null if no change was found. After kChangedInPlace, views of the tensor are still valid.
const char* change_of(const OutsideTensor& then, const at::Tensor& held, OutsideCheck check);

// A hash of the tensor's elements, on any device; 0 for tensors without storage.
std::uint64_t hash_of(const at::Tensor& tensor);

// The tensor's in-place version; 0 for inference tensors, which have no version.
std::uint32_t version_of(const at::Tensor& tensor);

// The tensors of which a sparse tensor consists: its values, then its indices. Empty for other
// tensors.
std::vector<at::Tensor> parts_of(const c10::TensorImpl& impl);

// The storage of a sparse tensor's values. A sparse tensor shares this storage with the tensor that
// its values() returns. Null for other tensors.
c10::StorageImpl* storage_of_values(const c10::TensorImpl& impl);

// The storage of a tensor; for a wrapper, the storage of the inner tensor (wrapped_tensor.h). For a
// sparse tensor, the storage of its values. Null for other tensors without storage.
inline c10::StorageImpl* storage_address(const at::Tensor& tensor) {
  const c10::TensorImpl& impl = impl_with_data(tensor);
  c10::StorageImpl* const own = impl.unsafe_storage().unsafeGetStorageImpl();
  return own != nullptr ? own : storage_of_values(impl);
}

}  // namespace rematch
