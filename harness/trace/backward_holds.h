// Results of backward's ops that are still held, on a device whose allocator has no memory tags: an
// accelerator. Memory that kernels allocate and free inside an op is not counted, nor are the
// workspaces of libraries.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>

#include "harness/measure/followed_storages.h"
#include "harness/measure/fresh_results.h"
#include "policies/base/bytes.h"

namespace rematch {

// Bytes that backward made and that are alive. `gradients` is the part in gradients of parameters.
struct BackwardBytes {
  Bytes all;
  Bytes gradients;
};

class BackwardHolds {
 public:
  // Call after an op of backward has run. `stack` ends with its results.
  void watch_results(const c10::OperatorHandle& op, const torch::jit::Stack& stack);
  // Call after autograd has left this storage in a parameter's gradient.
  void note_gradient(const c10::Storage& storage);

  BackwardBytes bytes();

 private:
  FreshResults fresh_results_;
  FollowedStorages followed_;
};

}  // namespace rematch
