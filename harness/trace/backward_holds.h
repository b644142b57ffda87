// What ops of backward made and somebody still holds, on a device whose allocator carries no tags:
// an accelerator's. What kernels take and give back inside an op is no part of it, nor are the
// workspaces of libraries.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>

#include <vector>

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
  struct Made {
    c10::weak_intrusive_ptr<c10::StorageImpl> storage;
    Bytes bytes;
    bool is_gradient = false;
  };

  Made* find(const c10::Storage& storage);

  FreshResults fresh_results_;
  std::vector<Made> made_;  // the gone are dropped at each look
};

}  // namespace rematch
