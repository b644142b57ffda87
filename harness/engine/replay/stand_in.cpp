#include "harness/engine/replay/stand_in.h"

#include <ATen/EmptyTensor.h>
#include <ATen/Functions.h>

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
  if (outside.is_meta()) return outside;
  const UnseenGuard unseen;
  return scratch_like(outside).copy_(outside);
}

at::Tensor content_on_cpu(const at::Tensor& tensor) {
  if (tensor.is_cpu() && tensor.is_contiguous()) return tensor;
  const UnseenGuard unseen;
  return tensor.cpu().contiguous();
}

}  // namespace rematch
