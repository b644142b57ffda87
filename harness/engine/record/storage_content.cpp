#include "harness/engine/record/storage_content.h"

#include <ATen/Functions.h>
#include <ATen/core/Tensor.h>
#include <c10/core/DispatchKey.h>
#include <c10/util/intrusive_ptr.h>

#include "harness/engine/interception.h"
#include "harness/engine/record/record.h"

namespace rematch {
at::Tensor bytes_of(c10::StorageImpl& storage) {
  const auto key =
      c10::computeDispatchKey(at::kByte, at::kStrided, c10::Device(storage.device_type()));
  at::Tensor bytes = at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(&storage)),
      c10::DispatchKeySet(key), caffe2::TypeMeta::Make<std::uint8_t>());
  bytes.unsafeGetTensorImpl()->set_sizes_contiguous({static_cast<std::int64_t>(storage.nbytes())});
  return bytes;
}

at::Tensor copy_of_bytes(c10::StorageImpl& storage) {
  const UnseenGuard unseen;
  return at::clone(bytes_of(storage));
}

void restore_bytes(c10::StorageImpl& storage, const at::Tensor& bytes) {
  const UnseenGuard unseen;
  bytes_of(storage).copy_(bytes);
}

bool has_bytes(c10::StorageImpl& storage, const at::Tensor& bytes) {
  if (bytes.is_meta()) return true;
  const UnseenGuard unseen;
  return at::equal(bytes_of(storage), bytes);
}

// A tensor without its own storage (sparse, or a wrapper of another tensor) is cloned as a whole.
at::Tensor on_copied_storage(const at::Tensor& tensor) {
  const bool is_plain = tensor.has_storage() &&
                        !tensor.unsafeGetTensorImpl()->key_set().has(c10::DispatchKey::Python);
  if (!is_plain) {
    const UnseenGuard unseen;
    return at::clone(tensor);
  }
  at::Tensor copy = without_graph(tensor, c10::VariableVersion(/*version=*/0));
  const at::Tensor bytes = copy_of_bytes(*tensor.storage().unsafeGetStorageImpl());
  copy.unsafeGetTensorImpl()->set_storage_keep_dtype(bytes.storage());
  return copy;
}

}  // namespace rematch
