// Shapes: B batch, N tokens, D dim, F ffn.
#include "models/dit/feed_forward.h"

#include <ATen/ops/gelu.h>

#include "models/layers/dropout.h"
#include "models/scope/scope.h"

namespace rematch::dit {

FeedForward make_feed_forward(Parameters& parameters, const std::string& name,
                              const ModelSpec& spec) {
  const std::int64_t dim = spec.at("dim");
  const std::int64_t ffn = spec.at("ffn");
  FeedForward result;
  result.up = make_linear(parameters, name + ".up", dim, ffn, Bias::kYes);
  result.down = make_linear(parameters, name + ".down", ffn, dim, Bias::kYes);
  result.dropout_ratio = dropout_ratio(spec);
  return result;
}

at::Tensor feed_forward(const FeedForward& ffn, const at::Tensor& x_BND) {
  const Scope scope("ffn");
  at::Tensor hidden_BNF = apply_linear(ffn.up, x_BND);
  hidden_BNF = at::gelu(hidden_BNF, "tanh");
  return dropout(apply_linear(ffn.down, hidden_BNF), ffn.dropout_ratio);
}

}  // namespace rematch::dit
