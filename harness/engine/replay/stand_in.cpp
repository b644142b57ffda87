#include "harness/engine/replay/stand_in.h"

#include <ATen/EmptyTensor.h>
#include <ATen/Functions.h>
#include <ATen/MemoryOverlap.h>

#include <cstddef>
#include <vector>

#include "harness/engine/interception.h"

namespace rematch {
namespace {

at::Tensor zeros_in_plain_memory(const at::Tensor& like) {
  auto* memory = new std::vector<std::byte>(
      at::detail::computeStorageNbytes(like.sizes(), like.strides(), like.itemsize()));
  return at::from_blob(
      memory->data(), like.sizes(), like.strides(), [memory](void*) { delete memory; },
      like.options());
}

}  // namespace

at::Tensor scratch_like(const at::Tensor& outside) {
  if (outside.is_meta()) return outside;
  const UnseenGuard unseen;
  const bool is_plain = outside.is_cpu() && outside.has_storage();
  return is_plain ? zeros_in_plain_memory(outside) : at::zeros_like(outside);
}

at::Tensor content_of(const at::Tensor& outside) {
  const UnseenGuard unseen;
  const bool is_plain = outside.has_storage() && outside.layout() == at::kStrided &&
                        !outside.key_set().has(c10::DispatchKey::Python);
  if (!is_plain || at::has_internal_overlap(outside) == at::MemOverlap::Yes) {
    return at::clone(outside);
  }
  return at::empty_strided(outside.sizes(), outside.strides(), outside.options()).copy_(outside);
}

at::Tensor content_on_cpu(const at::Tensor& tensor) {
  if (tensor.is_cpu() && tensor.is_contiguous()) return tensor;
  const UnseenGuard unseen;
  return tensor.cpu().contiguous();
}

}  // namespace rematch
