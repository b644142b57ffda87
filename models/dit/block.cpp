// Shapes: B batch, N video tokens, L text tokens, D dim, H heads, E head dim, F ffn.
#include "models/dit/block.h"

#include <ATen/ops/add.h>
#include <ATen/ops/chunk.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/mul.h>

#include "kernels/attention/attention.h"
#include "models/layers/norm.h"
#include "models/scope/scope.h"

namespace rematch::dit {
namespace {

constexpr double kEps = 1e-6;

Attention make_attention(Parameters& parameters, const std::string& name, const ModelSpec& spec) {
  const std::int64_t dim = spec.at("dim");
  Attention result;
  result.heads = spec.at("heads");
  result.query = make_linear(parameters, name + ".query", dim, dim, Bias::kYes);
  result.key = make_linear(parameters, name + ".key", dim, dim, Bias::kYes);
  result.value = make_linear(parameters, name + ".value", dim, dim, Bias::kYes);
  result.output = make_linear(parameters, name + ".output", dim, dim, Bias::kYes);
  result.query_norm = parameters.add(name + ".query_norm.weight", {dim}, near_one());
  result.key_norm = parameters.add(name + ".key_norm.weight", {dim}, near_one());
  return result;
}

struct Projected {
  at::Tensor q, k, v;  // q_BNHE, k_BLHE, v_BLHE
};

at::Tensor split_heads(const at::Tensor& x_BND, std::int64_t heads) {
  return x_BND.view({x_BND.size(0), x_BND.size(1), heads, x_BND.size(2) / heads});
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
  {
    const Scope scope("qk_norm");
    result.q = rms_norm(result.q, attention.query_norm, kEps);
    result.k = rms_norm(result.k, attention.key_norm, kEps);
  }
  result.q = split_heads(result.q, attention.heads);
  result.k = split_heads(result.k, attention.heads);
  result.v = split_heads(result.v, attention.heads);
  return result;
}

at::Tensor attend(const Attention& attention, Projected projected) {
  at::Tensor out;
  {
    const Scope scope("core");
    projected.q = projected.q.transpose(1, 2);
    projected.k = projected.k.transpose(1, 2);
    projected.v = projected.v.transpose(1, 2);
    out = std::get<0>(rematch::attention(projected.q, projected.k, projected.v, /*causal=*/false));
  }
  const Scope scope("output");
  out = out.transpose(1, 2);
  out = out.reshape({out.size(0), out.size(1), out.size(2) * out.size(3)});
  return apply_linear(attention.output, out);
}

// x + branch * gate, in float32.
at::Tensor add_gated(const at::Tensor& x_BND, at::Tensor branch_BND, const at::Tensor& gate_B1D) {
  branch_BND = branch_BND.to(at::kFloat);
  branch_BND = at::mul(branch_BND, gate_B1D);
  at::Tensor sum = x_BND.to(at::kFloat);
  sum = at::add(sum, branch_BND);
  return sum.to(x_BND.scalar_type());
}

}  // namespace

at::Tensor modulate(const at::Tensor& x_BND, const at::Tensor& shift_B1D,
                    const at::Tensor& scale_B1D) {
  at::Tensor result = layer_norm_float32(x_BND, at::Tensor(), at::Tensor(), kEps);
  const at::Tensor factor = at::add(scale_B1D, 1);
  result = at::mul(result, factor);
  result = at::add(result, shift_B1D);
  return result.to(x_BND.scalar_type());
}

Block::Block(Parameters& parameters, const std::string& name, const ModelSpec& spec) {
  const std::int64_t dim = spec.at("dim");
  const std::int64_t ffn = spec.at("ffn");
  modulation_ = parameters.add(name + ".modulation", {1, 6, dim}, uniform_by_fan_in(dim));
  self_ = make_attention(parameters, name + ".self_attention", spec);
  cross_norm_weight_ = parameters.add(name + ".cross_attention_norm.weight", {dim}, near_one());
  cross_norm_bias_ =
      parameters.add(name + ".cross_attention_norm.bias", {dim}, uniform_by_fan_in(dim));
  cross_ = make_attention(parameters, name + ".cross_attention", spec);
  up_ = make_linear(parameters, name + ".ffn.up", dim, ffn, Bias::kYes);
  down_ = make_linear(parameters, name + ".ffn.down", ffn, dim, Bias::kYes);
}

at::Tensor Block::forward(at::Tensor x_BND, const at::Tensor& text_BLD, const at::Tensor& time_B6D,
                          const RotaryTable& table) const {
  std::vector<at::Tensor> table_B1D;
  {
    const Scope scope("modulation");
    at::Tensor sum_B6D = modulation_.to(at::kFloat);
    sum_B6D = at::add(sum_B6D, time_B6D);
    table_B1D = at::chunk(sum_B6D, 6, /*dim=*/1);
  }
  at::Tensor branch_BND;
  {
    const Scope scope("self_attention_norm");
    branch_BND = modulate(x_BND, table_B1D[0], table_B1D[1]);
  }
  branch_BND = self_attend(branch_BND, table);
  x_BND = add_gated(x_BND, std::move(branch_BND), table_B1D[2]);
  {
    const Scope scope("cross_attention_norm");
    branch_BND = layer_norm_float32(x_BND, cross_norm_weight_, cross_norm_bias_, kEps);
    branch_BND = branch_BND.to(x_BND.scalar_type());
  }
  branch_BND = cross_attend(branch_BND, text_BLD);
  x_BND = at::add(x_BND, branch_BND);
  {
    const Scope scope("ffn_norm");
    branch_BND = modulate(x_BND, table_B1D[3], table_B1D[4]);
  }
  branch_BND = feed_forward(branch_BND);
  return add_gated(x_BND, std::move(branch_BND), table_B1D[5]);
}

at::Tensor Block::self_attend(const at::Tensor& x_BND, const RotaryTable& table) const {
  const Scope scope("self_attention");
  Projected projected = project(self_, x_BND, x_BND);
  {
    const Scope rotary("rotary");
    projected.q = apply_rotary(projected.q, table);
    projected.k = apply_rotary(projected.k, table);
  }
  return attend(self_, std::move(projected));
}

at::Tensor Block::cross_attend(const at::Tensor& x_BND, const at::Tensor& text_BLD) const {
  const Scope scope("cross_attention");
  Projected projected = project(cross_, x_BND, text_BLD);
  return attend(cross_, std::move(projected));
}

at::Tensor Block::feed_forward(const at::Tensor& x_BND) const {
  const Scope scope("ffn");
  at::Tensor hidden_BNF = apply_linear(up_, x_BND);
  hidden_BNF = at::gelu(hidden_BNF, "tanh");
  return apply_linear(down_, hidden_BNF);
}

}  // namespace rematch::dit
