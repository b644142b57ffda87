// Makes backward on device meta run the same ops as with real tensors.
//
// Note [Backward on meta]
// Autograd treats meta tensors like tensor subclasses. It therefore omits four things that it does
// with real tensors:
// - It sums contributions to a gradient in place, into the first contribution, if nothing else
//   refers to it.
// - It scatters the gradient of an indexing op in place, into fresh zeros.
// - It runs a reshape that needs no copy as `_reshape_alias`, unless the input is contiguous. On
//   meta, it runs `view` instead.
// - It scatters the gradient of an op that selects values, such as topk, into `zeros`. On meta, it
//   uses `new_zeros` instead from LibTorch 2.15 on.
// Without this mode, memory on meta would be too high by one gradient at every residual connection
// and every gather, and ops would have other names. The mode replaces each such op by the op that
// runs with real tensors, under the conditions that autograd checks.
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
  std::vector<Pair> in_place_;  // the first pair is add and add_, which sum gradients
  Pair reshape_;
  Pair zeros_;
};

}  // namespace rematch
