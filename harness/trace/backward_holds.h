// Counts the live bytes that ops of backward have allocated for their results. Used on
// accelerators, whose allocators have no memory tags. Does not count memory that a kernel allocates
// and frees inside an op, or workspaces of libraries.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>

#include "harness/measure/followed_storages.h"
#include "harness/measure/fresh_results.h"
#include "policies/base/bytes.h"

namespace rematch {

// Live bytes that backward has allocated. `gradients` counts only gradients of parameters.
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
