// The in-place version at which autograd saved a tensor. Tensors on one storage may have separate
// versions, such as the results of unsafe_split. Autograd then assumes that a write to one tensor
// does not affect the others.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace rematch {

class SavedVersion {
 public:
  explicit SavedVersion(const at::Tensor& tensor)
      : counter_(tensor.unsafeGetTensorImpl()->version_counter()), version_(current()) {}

  // Returns whether an op has written to the tensor after it was saved. Autograd then rejects the
  // saved tensor.
  bool is_stale() const { return current() != version_; }

 private:
  // Inference tensors have no counter.
  std::uint32_t current() const { return counter_.enabled() ? counter_.current_version() : 0; }

  c10::VariableVersion counter_;
  std::uint32_t version_;
};

}  // namespace rematch
