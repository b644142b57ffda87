// The state of an outside tensor when the record first saw it, and whether it still is
// that when backward wants it.
//
// Note [Outside tensors]
// The record holds them and not their content, so a change between forward and backward gives other
// bits. Seen without cost: a write (the version counter) and an exchange of the data (set_data,
// x.data = y: the identity of the storage and the place in it). A write through .data or a raw
// pointer raises no version and exchanges nothing: only OutsideCheck::kHashes sees it. A storage
// whose memory was let go and filled again meanwhile, as sharded training does with parameters, is
// taken to hold what it held; addresses of memory tell nothing there, nor would they be the same.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/intrusive_ptr.h>

#include <cstdint>
#include <vector>

#include "harness/engine/record/wrapped_tensor.h"
#include "harness/engine/recording.h"

namespace rematch {

struct OutsideTensor {
  std::int32_t value = 0;                             // of the record, which holds it
  std::uint32_t version = 0;                          // in-place version
  c10::weak_intrusive_ptr<c10::StorageImpl> storage;  // weak: its address is not used again
  std::int64_t storage_offset = 0;
  // The user's tensor, if still alive, where the record holds a copy of it without graph.
  c10::weak_intrusive_ptr<c10::TensorImpl> original;
  std::uint64_t hash = 0;     // of the content, under OutsideCheck::kHashes
  bool side_written = false;  // by an op of the region: see Note [Side writes]
};

// `held` is what the record holds: the tensor itself, or a copy without its graph.
OutsideTensor outside_tensor(const at::Tensor& tensor, const at::Tensor& held);

// Notes that the record now holds `held` instead: another storage with the same content.
void exchange_held(OutsideTensor& outside, const at::Tensor& held);

inline constexpr const char* kChangedInPlace = "changed in place";

// How it changed since, for messages; null if no change was seen. kChangedInPlace: it
// was written to, and a view of it would be as it was.
const char* change_of(const OutsideTensor& then, const at::Tensor& held, OutsideCheck check);

// A hash of the tensor's elements, on any device; 0 for tensors without storage.
std::uint64_t hash_of(const at::Tensor& tensor);

// The tensor's in-place version; 0 for inference tensors, which have none.
std::uint32_t version_of(const at::Tensor& tensor);

// The storage of a sparse tensor's values, which values() and the tensor that it was made of share;
// null for other tensors.
c10::StorageImpl* storage_of_values(const c10::TensorImpl& impl);

// The storages of a sparse tensor that no op of a region may write to: its indices, and the values
// of a compressed one.
std::vector<c10::StorageImpl*> storages_never_written(const c10::TensorImpl& impl);

// The storage of a tensor; of a wrapper, that of the one with the data (wrapped_tensor.h). Null for
// tensors without storage.
inline c10::StorageImpl* storage_address(const at::Tensor& tensor) {
  const c10::TensorImpl& impl = impl_with_data(tensor);
  c10::StorageImpl* const own = impl.unsafe_storage().unsafeGetStorageImpl();
  return own != nullptr ? own : storage_of_values(impl);
}

}  // namespace rematch
