// The in-place version at which autograd saved a tensor. Two tensors on one storage need not share
// a version (the pieces of unsafe_split do not): a write to one leaves what was saved of the other
// as it is, as far as autograd knows.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace rematch {

class SavedVersion {
 public:
  explicit SavedVersion(const at::Tensor& tensor)
      : counter_(tensor.unsafeGetTensorImpl()->version_counter()), version_(current()) {}

  // Has an op written to the tensor since? Then autograd refuses to use what it saved.
  bool is_stale() const { return current() != version_; }

 private:
  // Inference tensors have no counter.
  std::uint32_t current() const { return counter_.enabled() ? counter_.current_version() : 0; }

  c10::VariableVersion counter_;
  std::uint32_t version_;
};

}  // namespace rematch
