// A linear layer with a low-rank adapter beside a frozen weight (LoRA, Hu et al. 2021).
#pragma once

#include <string>

#include "models/layers/linear.h"

namespace rematch {

struct AdaptedLinear {
  Linear base;
  at::Tensor down;  // [rank, in], or undefined: no adapter
  at::Tensor up;    // [out, rank]
};

// As make_linear without a bias; a rank above 0 adds `name`.adapter.down and .up, which learn. `up`
// does not start at zero, or `down` would get no gradient in the first step.
AdaptedLinear make_adapted_linear(Parameters& parameters, const std::string& name,
                                  std::int64_t inputs, std::int64_t outputs, std::int64_t rank);

// x weight^T + 2 (x down^T) up^T for a matrix x: `t mm`, and with an adapter `t mm t mm mul add`
// behind it, all in a scope `adapted`. The factor is the paper's alpha / rank with alpha = 2 rank.
at::Tensor apply_linear(const AdaptedLinear& linear, const at::Tensor& x);

}  // namespace rematch
