// Shapes: T all tokens of the batch, B sequences, S tokens a sequence, D dim, H heads, E head dim.
#include "models/language/attention.h"

#include "kernels/attention/attention.h"
#include "models/scope/scope.h"

namespace rematch {

GroupedQueryAttention::GroupedQueryAttention(Parameters& parameters, const std::string& name,
                                             const ModelSpec& spec)
    : batch_(spec.at("batch")),
      tokens_(spec.at("tokens")),
      heads_(spec.at("heads")),
      kv_heads_(spec.at("kv_heads")),
      head_dim_(spec.at("dim") / spec.at("heads")),
      dropout_ratio_(dropout_ratio(spec)),
      ops_(ops_of(spec)) {
  const std::int64_t dim = spec.at("dim");
  const std::int64_t kv_dim = kv_heads_ * head_dim_;
  const std::int64_t rank = spec.option("adapter_rank");
  wq_ = make_adapted_linear(parameters, name + ".wq", dim, dim, rank);
  wk_ = make_adapted_linear(parameters, name + ".wk", dim, kv_dim, rank);
  wv_ = make_adapted_linear(parameters, name + ".wv", dim, kv_dim, rank);
  wo_ = make_adapted_linear(parameters, name + ".wo", dim, dim, rank);
}

at::Tensor GroupedQueryAttention::forward(const at::Tensor& x_TD, const RotaryTable& table) const {
  const Scope scope("attention");
  at::Tensor q, k, v;
  {
    const Scope qkv("qkv");
    q = apply_linear(wq_, x_TD);
    k = apply_linear(wk_, x_TD);
    v = apply_linear(wv_, x_TD);
  }
  {
    const Scope rotary("rotary");
    q = q.view({batch_, tokens_, heads_, head_dim_});
    k = k.view({batch_, tokens_, kv_heads_, head_dim_});
    v = v.view({batch_, tokens_, kv_heads_, head_dim_});
    q = apply_rotary(q, table, ops_);
    k = apply_rotary(k, table, ops_);
  }
  at::Tensor out;
  {
    const Scope core("core");
    q = q.transpose(1, 2);
    k = k.transpose(1, 2);
    v = v.transpose(1, 2);
    out = std::get<0>(attention(q, k, v, /*causal=*/true));
  }
  const Scope output("output");
  out = out.transpose(1, 2);
  out = out.reshape({x_TD.size(0), heads_ * head_dim_});
  return dropout(apply_linear(wo_, out), dropout_ratio_);
}

}  // namespace rematch
