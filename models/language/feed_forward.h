// SwiGLU feed-forward: w2 (silu(w1 x) * w3 x), no biases.
#pragma once

#include <string>

#include "models/layers/adapter.h"
#include "models/layers/ops.h"

namespace rematch {

class FeedForward {
 public:
  // Parameters `name`.w1, .w3, .w2; adapters on each of a rank above 0.
  FeedForward(Parameters& parameters, const std::string& name, std::int64_t dim,
              std::int64_t hidden, Ops ops, std::int64_t adapter_rank = 0);

  at::Tensor forward(const at::Tensor& x_TD) const;

 private:
  Ops ops_;
  AdaptedLinear w1_, w3_, w2_;
};

}  // namespace rematch
