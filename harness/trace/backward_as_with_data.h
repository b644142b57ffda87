// Makes backward on meta run the ops that it runs with real tensors.
//
// Note [Backward on meta]
// Meta tensors count as subclass-like, so autograd does not do four things on them that it does
// with real tensors:
// - If a gradient has several contributions, it adds them into the first one if nobody else holds
//   it.
// - It scatters the gradient of an indexing op in place, into fresh zeros.
// - It runs a reshape that needs no copy as `_reshape_alias`, unless the input is contiguous. On
//   meta, it runs `view` instead.
// - It scatters the gradient of an op that selects values, such as topk, into `zeros`. On meta
//   these are `new_zeros` from LibTorch 2.15 on.
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
  std::vector<Pair> in_place_;  // the first pair adds two gradients
  Pair reshape_;
  Pair zeros_;
};

}  // namespace rematch
