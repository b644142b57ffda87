// Shapes: B batch, N query tokens, L key tokens, D dim, H heads, E head dim, F ffn.
#include "models/video/parts.h"

#include <ATen/ops/add.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/mul.h>

#include "kernels/attention/attention.h"
#include "kernels/fused/modulate.h"
#include "models/layers/norm.h"
#include "models/scope/scope.h"

namespace rematch::video {
namespace {

constexpr double kModulatedNormEps = 1e-6;

at::Tensor split_into_heads(const at::Tensor& x_BND, std::int64_t heads) {
  return x_BND.view({x_BND.size(0), x_BND.size(1), heads, x_BND.size(2) / heads});
}

}  // namespace

Attention make_attention(Parameters& parameters, const std::string& name, const ModelSpec& spec,
                         double norm_eps) {
  const std::int64_t dim = spec.at("dim");
  Attention result;
  result.heads = spec.at("heads");
  result.norm_eps = norm_eps;
  result.dropout_ratio = dropout_ratio(spec);
  result.ops = ops_of(spec);
  result.query = make_linear(parameters, name + ".query", dim, dim, Bias::kYes);
  result.key = make_linear(parameters, name + ".key", dim, dim, Bias::kYes);
  result.value = make_linear(parameters, name + ".value", dim, dim, Bias::kYes);
  result.output = make_linear(parameters, name + ".output", dim, dim, Bias::kYes);
  result.query_norm = parameters.add(name + ".query_norm.weight", {dim}, near_one());
  result.key_norm = parameters.add(name + ".key_norm.weight", {dim}, near_one());
  return result;
}

Projected project(const Attention& attention, const at::Tensor& x_BND,
                  const at::Tensor& context_BLD) {
  Projected result;
  {
    const Scope scope("qkv");
    result.q = apply_linear(attention.query, x_BND);
    result.k = apply_linear(attention.key, context_BLD);
    result.v = apply_linear(attention.value, context_BLD);
  }
  const Scope scope("qk_norm");
  result.q = rms_norm(result.q, attention.query_norm, attention.norm_eps, attention.ops);
  result.k = rms_norm(result.k, attention.key_norm, attention.norm_eps, attention.ops);
  return result;
}

void split_heads(const Attention& attention, Projected& projected) {
  projected.q = split_into_heads(projected.q, attention.heads);
  projected.k = split_into_heads(projected.k, attention.heads);
  projected.v = split_into_heads(projected.v, attention.heads);
}

at::Tensor attend(const Attention& attention, Projected projected, const at::Tensor& mask) {
  at::Tensor out;
  {
    const Scope scope("core");
    projected.q = projected.q.transpose(1, 2);
    projected.k = projected.k.transpose(1, 2);
    projected.v = projected.v.transpose(1, 2);
    if (mask.defined()) {
      out = std::get<0>(masked_attention(projected.q, projected.k, projected.v, mask));
    } else {
      out =
          std::get<0>(rematch::attention(projected.q, projected.k, projected.v, /*causal=*/false));
    }
  }
  const Scope scope("output");
  out = out.transpose(1, 2);
  out = out.reshape({out.size(0), out.size(1), out.size(2) * out.size(3)});
  return dropout(apply_linear(attention.output, out), attention.dropout_ratio);
}

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

at::Tensor modulate(const at::Tensor& x_BND, const at::Tensor& shift_B1D,
                    const at::Tensor& scale_B1D, Ops ops) {
  at::Tensor result = layer_norm_float32(x_BND, at::Tensor(), at::Tensor(), kModulatedNormEps);
  if (ops == Ops::kFused) {
    return fused::modulate(result, shift_B1D, scale_B1D, x_BND.scalar_type());
  }
  const at::Tensor factor = at::add(scale_B1D, 1);
  result = at::mul(result, factor);
  result = at::add(result, shift_B1D);
  return result.to(x_BND.scalar_type());
}

}  // namespace rematch::video
