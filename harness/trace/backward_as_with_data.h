// Makes backward on device meta run the same ops as with real tensors.
//
// Note [Backward on meta]
// Autograd treats meta tensors like tensor subclasses, and omits four things that it does with real
// tensors:
// - Autograd sums several contributions to a gradient in place, in the first one, if nothing else
//   refers to it.
// - Autograd scatters the gradient of an indexing op in place, into fresh zeros.
// - Autograd runs a reshape that needs no copy as `_reshape_alias`, unless the input is contiguous.
//   On meta, autograd runs `view` instead.
// - Autograd scatters the gradient of an op that selects values, such as topk, into `zeros`.
//   On meta these are `new_zeros` from LibTorch 2.15 on.
// Without this mode, memory on meta would be one gradient too high at every residual connection and
// every gather, and ops would have other names. The mode replaces each such op by the op that runs
// with real tensors, under the conditions that autograd checks.
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
