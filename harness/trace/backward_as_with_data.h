// Makes backward on meta run the ops that it runs with real tensors.
//
// Note [Backward on meta]
// Meta tensors count as subclass-like. On them, autograd does not do four things that autograd does
// on real tensors:
// - If a gradient has several contributions, autograd adds them into the first contribution if
//   nobody else holds the first.
// - Autograd scatters the gradient of an indexing op in place, into fresh zeros.
// - Autograd runs a reshape that needs no copy as `_reshape_alias`, unless the input is contiguous.
//   On meta, autograd runs `view` instead.
// - Autograd scatters the gradient of an op that selects values, such as topk, into `zeros`.
//   On meta these are `new_zeros` from LibTorch 2.15 on.
// Without this mode, the memory curve on meta would be one gradient too high at every residual and
// every gather, and the names of ops would differ. The mode replaces such an op by the op with real
// tensors, under the conditions that autograd itself checks.
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
  std::vector<Pair> in_place_;  // the ops of the first pair add two gradients
  Pair reshape_;
  Pair zeros_;
};

}  // namespace rematch
