// Makes backward on meta add gradients where it would with real tensors: in place.
//
// Note [Accumulation on meta]
// Where a tensor's gradient has several contributions, autograd adds them into the first one if
// nobody else holds it. It never does so for meta tensors (they count as subclass-like), so their
// memory curve would be one gradient too high at every residual. This mode turns such an add back
// into add_, under the conditions autograd itself asks for.
#pragma once

#include "harness/engine/interception.h"

namespace rematch {

class InPlaceAccumulation final : public OpMode {
 public:
  InPlaceAccumulation();
  void run(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack,
           std::size_t depth) override;

 private:
  c10::OperatorHandle add_;
  c10::OperatorHandle add_in_place_;
};

}  // namespace rematch
