// Counts the live bytes of results that ops of backward made. Used on accelerators, whose
// allocators have no memory tags. Counts neither memory that kernels allocate and free inside an
// op, nor workspaces of libraries.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>

#include "harness/measure/followed_storages.h"
#include "harness/measure/fresh_results.h"
#include "policies/base/bytes.h"

namespace rematch {

// Live bytes that backward has allocated. `gradients` is the part that belongs to gradients of
// parameters.
struct BackwardBytes {
  Bytes all;
  Bytes gradients;
};

class BackwardHolds {
 public:
  // Call this after an op of backward has run. `stack` ends with the op's results.
  void watch_results(const c10::OperatorHandle& op, const torch::jit::Stack& stack);
  // Call this after autograd has stored a parameter's gradient in this storage.
  void note_gradient(const c10::Storage& storage);

  BackwardBytes bytes();

 private:
  FreshResults fresh_results_;
  FollowedStorages followed_;
};

}  // namespace rematch
