// Shapes: T all tokens of the batch, B sequences, S tokens per sequence, D dim, H heads, E head
// dim.
#include "models/language/attention.h"

#include <utility>

#include "kernels/attention/attention.h"
#include "models/scope/names.h"
#include "models/scope/scope.h"

namespace rematch {

GroupedQueryAttention::GroupedQueryAttention(Parameters& parameters, const std::string& name,
                                             const ModelSpec& spec)
    : batch_(spec.at("batch")),
      tokens_(spec.at("tokens") / rank_axis(spec, "ulysses").size / rank_axis(spec, "cp").size),
      heads_(spec.at("heads") / rank_axis(spec, "tp").size),
      kv_heads_(spec.at("kv_heads") / rank_axis(spec, "tp").size),
      head_dim_(spec.at("dim") / spec.at("heads")),
      dropout_ratio_(dropout_ratio(spec)),
      ops_(ops_of(spec)),
      parallel_(parameters.tensor_parallel()),
      ulysses_(rank_axis(spec, "ulysses")),
      context_(spec, parameters.device()) {
  const std::int64_t dim = spec.at("dim");
  const std::int64_t kv_dim = spec.at("kv_heads") * head_dim_;
  const std::int64_t rank = spec.option("adapter_rank");
  wqkv_ = make_joint_linear(parameters, spec, name + ".wqkv",
                            {{name + ".wq", dim}, {name + ".wk", kv_dim}, {name + ".wv", kv_dim}},
                            dim, Bias::kNo);
  wo_ = make_adapted_linear(parameters, name + ".wo", dim, dim, rank, LinearSplit::kByInputs);
}

at::Tensor GroupedQueryAttention::forward(const at::Tensor& x_TD, const RotaryTable& table) const {
  const Scope scope(scope_names::kAttention);
  at::Tensor q, k, v;
  {
    const Scope qkv(scope_names::kQkv);
    const at::Tensor input_TD = enter(x_TD, parallel_);
    std::vector<at::Tensor> parts = apply_joint_linear(wqkv_, input_TD);
    q = std::move(parts[0]);
    k = std::move(parts[1]);
    v = std::move(parts[2]);
    // As a view, v would keep q and k alive for backward, which reads only the rotated q and k.
    if (!v.is_contiguous()) v = v.contiguous();
  }
  {
    const Scope rotary(scope_names::kRotary);
    q = q.view({batch_, tokens_, heads_, head_dim_});
    k = k.view({batch_, tokens_, kv_heads_, head_dim_});
    v = v.view({batch_, tokens_, kv_heads_, head_dim_});
    q = apply_rotary(q, table, ops_);
    k = apply_rotary(k, table, ops_);
  }
  at::Tensor out;
  {
    const Scope core(scope_names::kCore);
    q = tokens_to_heads(std::move(q), ulysses_);
    k = tokens_to_heads(std::move(k), ulysses_);
    v = tokens_to_heads(std::move(v), ulysses_);
    if (context_.is_split()) {
      out = context_.attend(std::move(q), std::move(k), std::move(v));
    } else {
      q = q.transpose(1, 2);
      k = k.transpose(1, 2);
      v = v.transpose(1, 2);
      out = std::get<0>(attention(q, k, v, /*causal=*/true));
    }
    if (ulysses_.is_split()) out = heads_to_tokens(out.transpose(1, 2), ulysses_);
  }
  const Scope output(scope_names::kOutput);
  if (!ulysses_.is_split()) out = out.transpose(1, 2);
  out = out.reshape({batch_ * tokens_, heads_ * head_dim_});
  at::Tensor result = apply_linear(wo_, out);
  result = leave(std::move(result), parallel_);
  return dropout(std::move(result), dropout_ratio_);
}

}  // namespace rematch
