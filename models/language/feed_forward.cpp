// Shapes: T tokens, D dim, F hidden.
#include "models/language/feed_forward.h"

#include <ATen/ops/mul.h>
#include <ATen/ops/silu.h>

#include "kernels/fused/silu_mul.h"

namespace rematch {

FeedForward::FeedForward(Parameters& parameters, const std::string& name, std::int64_t dim,
                         std::int64_t hidden, Ops ops, std::int64_t adapter_rank)
    : ops_(ops),
      w1_(make_adapted_linear(parameters, name + ".w1", dim, hidden, adapter_rank)),
      w3_(make_adapted_linear(parameters, name + ".w3", dim, hidden, adapter_rank)),
      w2_(make_adapted_linear(parameters, name + ".w2", hidden, dim, adapter_rank)) {}

at::Tensor FeedForward::forward(const at::Tensor& x_TD) const {
  at::Tensor hidden_TF = apply_linear(w1_, x_TD);
  if (ops_ == Ops::kFused) {
    const at::Tensor up_TF = apply_linear(w3_, x_TD);
    hidden_TF = fused::silu_mul(hidden_TF, up_TF);
    return apply_linear(w2_, hidden_TF);
  }
  hidden_TF = at::silu(hidden_TF);
  const at::Tensor up_TF = apply_linear(w3_, x_TD);
  hidden_TF = at::mul(hidden_TF, up_TF);
  return apply_linear(w2_, hidden_TF);
}

}  // namespace rematch
