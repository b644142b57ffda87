// Makes backward on device meta run the same ops as with real tensors.
//
// Note [Backward on meta]
// Autograd treats meta tensors like tensor subclasses. On real tensors, autograd behaves
// differently in four ways:
// - It sums contributions to a gradient in place, into the first contribution, if nothing else
//   refers to that tensor.
// - It scatters the gradient of an indexing op in place, into new zeros.
// - It runs a non-contiguous reshape that needs no copy as `_reshape_alias`. On meta, it runs
//   `view` instead.
// - It scatters the gradient of an op that selects values, such as topk, into `zeros`. From
//   LibTorch 2.15 on, it uses `new_zeros` on meta.
// Without this mode, the memory measured on meta would be too high, and ops would have other names.
// The mode replaces each op by the op that runs on real tensors.
#pragma once

#include <vector>

#include "harness/engine/interception.h"

namespace rematch {

class BackwardAsWithData final : public OpMode {
 public:
  BackwardAsWithData();
  void run(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack,
           std::size_t depth) override;

 private:
  struct Pair {
    c10::OperatorHandle on_meta;
    c10::OperatorHandle with_data;
  };
  std::vector<Pair> in_place_;  // in_place_[0] is {add, add_}, which sum gradients
  Pair reshape_;
  Pair zeros_;
};

}  // namespace rematch
