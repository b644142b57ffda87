// What ops of backward made and somebody still holds, on a device whose allocator carries no tags:
// an accelerator's. What kernels take and give back inside an op is no part of it, nor are the
// workspaces of libraries.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>

#include "harness/measure/followed_storages.h"
#include "harness/measure/fresh_results.h"
#include "policies/base/bytes.h"

namespace rematch {

// Bytes that backward made and that are alive, and those of them that are gradients of parameters.
struct BackwardBytes {
  Bytes all;
  Bytes gradients;
};

class BackwardHolds {
 public:
  // An op of backward has run; `stack` ends with its results.
  void watch_results(const c10::OperatorHandle& op, const torch::jit::Stack& stack);
  // Autograd has left this in a parameter's gradient.
  void note_gradient(const c10::Storage& storage);

  BackwardBytes bytes();

 private:
  FreshResults fresh_results_;
  FollowedStorages followed_;
};

}  // namespace rematch
