#include "harness/engine/stores/stored_value.h"

#include <c10/core/DeviceGuard.h>
#include <c10/core/StorageImpl.h>
#include <c10/util/intrusive_ptr.h>

#include <utility>

#include "harness/engine/record/record.h"

namespace rematch {
namespace {

c10::Storage make_storage(std::size_t bytes, c10::DataPtr data, c10::Allocator* allocator) {
  return c10::Storage(c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(),
                                                            bytes, std::move(data), allocator,
                                                            /*resizable=*/allocator != nullptr));
}

at::Tensor without_data(const at::Tensor& tensor) {
  at::Tensor shell = without_graph(tensor, c10::VariableVersion(/*version=*/0));
  shell.unsafeGetTensorImpl()->set_storage_keep_dtype(
      make_storage(0, c10::DataPtr(nullptr, tensor.device()), nullptr));
  return shell;
}

c10::Allocator* allocator_of(const c10::Storage& storage) {
  if (storage.allocator() != nullptr) return storage.allocator();
  return c10::GetAllocator(storage.device_type());
}

}  // namespace

bool StoredValue::is_possible(const at::Tensor& tensor) {
  const bool is_plain = tensor.layout() == at::kStrided && tensor.has_storage() &&
                        !tensor.is_inference() &&
                        !tensor.unsafeGetTensorImpl()->key_set().has(c10::DispatchKey::Python);
  return is_plain && tensor.storage().nbytes() > 0;
}

StoredValue::StoredValue(std::int32_t value, const at::Tensor& tensor, Store store,
                         ValueStore& values)
    : value_(value),
      store_(store),
      num_bytes_(tensor.storage().nbytes()),
      bytes_(values.put(tensor)),
      shell_(without_data(tensor)),
      allocator_(allocator_of(tensor.storage())),
      version_(tensor) {}

std::string StoredValue::describe() const { return describe_tensor(shell_); }

at::Tensor StoredValue::restore() {
  const c10::OptionalDeviceGuard on_device(shell_.device());
  c10::Storage storage = make_storage(num_bytes_, allocator_->allocate(num_bytes_), allocator_);
  bytes_->bring_back(storage.mutable_data());
  shell_.unsafeGetTensorImpl()->set_storage_keep_dtype(std::move(storage));
  return std::move(shell_);
}

}  // namespace rematch
