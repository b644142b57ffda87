#include "harness/engine/record/outside.h"

#include <ATen/Functions.h>
#include <ATen/SparseCsrTensorImpl.h>
#include <ATen/SparseTensorImpl.h>

#include <functional>
#include <string_view>
#include <utility>

#include "harness/engine/interception.h"
#include "harness/engine/replay/stand_in.h"

namespace rematch {
namespace {

c10::StorageImpl* storage_of(const c10::TensorImpl& impl) {
  return impl.has_storage() ? impl.unsafe_storage().unsafeGetStorageImpl() : nullptr;
}

std::int64_t offset_of(const c10::TensorImpl& impl) {
  return impl.has_storage() ? impl.storage_offset() : 0;
}

bool is_exchanged(const OutsideTensor& then, const c10::TensorImpl& impl) {
  return storage_of(impl) != then.storage._unsafe_get_target() ||
         offset_of(impl) != then.storage_offset;
}

bool is_exchanged(const OutsideTensor& then, const at::Tensor& held) {
  if (then.original._unsafe_get_target() == nullptr) {
    return is_exchanged(then, *held.unsafeGetTensorImpl());
  }
  const auto original = then.original.lock();
  return original.defined() && is_exchanged(then, *original);
}

}  // namespace

OutsideTensor outside_tensor(const at::Tensor& tensor, const at::Tensor& held) {
  using WeakTensor = c10::weak_intrusive_ptr<c10::TensorImpl>;
  using WeakStorage = c10::weak_intrusive_ptr<c10::StorageImpl>;
  const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  const bool is_held_itself = held.unsafeGetTensorImpl() == &impl;
  return {.version = version_of(held),
          .storage = impl.has_storage() ? impl.unsafe_storage().getWeakStorageImpl()
                                        : WeakStorage(c10::intrusive_ptr<c10::StorageImpl>()),
          .storage_offset = offset_of(impl),
          .original = is_held_itself ? WeakTensor(c10::intrusive_ptr<c10::TensorImpl>())
                                     : WeakTensor(tensor.getIntrusivePtr())};
}

void exchange_held(OutsideTensor& outside, const at::Tensor& held) {
  OutsideTensor exchanged = outside_tensor(held, held);
  exchanged.value = outside.value;
  exchanged.hash = outside.hash;
  exchanged.side_written = outside.side_written;
  outside = std::move(exchanged);
}

const char* change_of(const OutsideTensor& then, const at::Tensor& held, OutsideCheck check) {
  if (is_exchanged(then, held)) return "given different data (set_data, x.data = y)";
  if (version_of(held) != then.version) return kChangedInPlace;
  if (check == OutsideCheck::kHashes && hash_of(held) != then.hash) {
    return "written to without a new version number (through .data or a raw pointer)";
  }
  return nullptr;
}

namespace {

at::ScalarType integer_of(std::int64_t bytes) {
  if (bytes == 1) return at::kByte;
  if (bytes == 2) return at::kShort;
  return bytes == 4 ? at::kInt : at::kLong;
}

// Sums the elements' bits on the device, because copies to the host would take most of the time of
// a step under Verify. A permutation of the elements has the same hash.
std::uint64_t hash_on_device(const at::Tensor& tensor) {
  const UnseenGuard unseen;
  const at::Tensor numbers = tensor.is_complex() ? at::view_as_real(tensor.resolve_conj()) : tensor;
  const at::Tensor bits = numbers.contiguous().view(integer_of(numbers.element_size()));
  return static_cast<std::uint64_t>(at::sum(bits, at::kLong).item<std::int64_t>());
}

}  // namespace

std::uint64_t hash_of(const at::Tensor& given) {
  const at::Tensor tensor = tensor_with_data(given);
  if (!tensor.has_storage() || tensor.is_meta() || tensor.numel() == 0) return 0;
  if (tensor.storage().data() == nullptr)
    return 0;  // The program has freed the memory, as FSDP does.
  if (!tensor.is_cpu()) return hash_on_device(tensor);
  const at::Tensor content = content_on_cpu(tensor);
  return std::hash<std::string_view>{}(
      {static_cast<const char*>(content.const_data_ptr()), content.nbytes()});
}

c10::StorageImpl* storage_of_values(const c10::TensorImpl& impl) {
  if (const auto* sparse = dynamic_cast<const at::SparseTensorImpl*>(&impl)) {
    return storage_of(*sparse->values().unsafeGetTensorImpl());
  }
  if (const auto* compressed = dynamic_cast<const at::SparseCsrTensorImpl*>(&impl)) {
    return storage_of(*compressed->values().unsafeGetTensorImpl());
  }
  return nullptr;
}

std::vector<at::Tensor> parts_of(const c10::TensorImpl& impl) {
  if (const auto* sparse = dynamic_cast<const at::SparseTensorImpl*>(&impl)) {
    return {sparse->values(), sparse->indices()};
  }
  if (const auto* compressed = dynamic_cast<const at::SparseCsrTensorImpl*>(&impl)) {
    return {compressed->values(), compressed->compressed_indices(), compressed->plain_indices()};
  }
  return {};
}

std::uint32_t version_of(const at::Tensor& tensor) {
  return tensor.is_inference() ? 0 : static_cast<std::uint32_t>(tensor._version());
}

}  // namespace rematch
