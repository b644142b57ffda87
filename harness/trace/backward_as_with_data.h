// Makes backward on meta run the ops that it runs with real tensors.
//
// Note [Backward on meta]
// Meta tensors count as subclass-like, and autograd spares such tensors three things. Where a
// tensor's gradient has several contributions, it adds them into the first one if nobody else holds
// it. The gradient of an indexing op is scattered into fresh zeros. And a reshape that needs no
// copy is `_reshape_alias` unless its input is contiguous; on meta it is always `view`. Left alone,
// the memory curve would be one gradient too high at every residual and every gather, and the names
// of ops would differ. This mode turns such an op back, under the conditions autograd itself asks
// for.
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
  std::vector<Pair> in_place_;  // the first one adds two gradients
  Pair reshape_;
};

}  // namespace rematch
