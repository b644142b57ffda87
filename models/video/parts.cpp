// Shapes: B batch, N query tokens, L key tokens, D dim, H heads, E head dim, F ffn.
#include "models/video/parts.h"

#include <ATen/ops/add.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mul.h>

#include <utility>

#include "kernels/attention/attention.h"
#include "kernels/fused/bias_gelu.h"
#include "kernels/fused/layer_norm.h"
#include "kernels/fused/rms_norm_rope.h"
#include "models/layers/norm.h"
#include "models/scope/names.h"
#include "models/scope/scope.h"

namespace rematch::video {
namespace {

constexpr double kModulatedNormEps = 1e-6;

at::Tensor split_into_heads(const at::Tensor& x_BND, std::int64_t heads) {
  return x_BND.view({x_BND.size(0), x_BND.size(1), heads, x_BND.size(2) / heads});
}

at::Tensor norm_over_heads(const Attention& attention, const at::Tensor& x_BND,
                           const at::Tensor& weight) {
  const RankAxis& axis = attention.parallel.axis;
  if (axis.is_split()) return split_rms_norm(x_BND, weight, attention.norm_eps, axis);
  return rms_norm(x_BND, weight, attention.norm_eps, attention.ops);
}

JointLinear make_projections(Parameters& parameters, const ModelSpec& spec, const std::string& name,
                             const std::vector<PackedPart>& parts) {
  if (parts.empty()) return {};
  constexpr const char* kPackedNames[] = {".query", ".kv", ".qkv"};
  return make_joint_linear(parameters, spec, name + kPackedNames[parts.size() - 1], parts,
                           spec.at("dim"), Bias::kYes);
}

// Opens scope "qkv".
Projected project_only(const Attention& attention, const at::Tensor& x_BND,
                       const at::Tensor& context_BLD) {
  const Scope scope(scope_names::kQkv);
  const at::Tensor input_BND = enter(x_BND, attention.parallel);
  // The text is not split over ranks, so it need not be gathered.
  const at::Tensor context =
      context_BLD.is_same(x_BND) ? input_BND : copy(context_BLD, attention.parallel.axis);
  std::vector<at::Tensor> parts = apply_joint_linear(attention.from_x, input_BND);
  for (at::Tensor& part : apply_joint_linear(attention.from_context, context)) {
    parts.push_back(std::move(part));
  }
  return {std::move(parts[0]), std::move(parts[1]), std::move(parts[2])};
}

}  // namespace

Attention make_attention(Parameters& parameters, const std::string& name, const ModelSpec& spec,
                         double norm_eps, AttendsTo context) {
  const std::int64_t dim = spec.at("dim");
  Attention result;
  result.parallel = parameters.tensor_parallel();
  result.heads = spec.at("heads") / result.parallel.axis.size;
  result.norm_eps = norm_eps;
  result.dropout_ratio = dropout_ratio(spec);
  result.ops = ops_of(spec);
  if (context == AttendsTo::kItself) result.exchange = rank_axis(spec, "ulysses");
  std::vector<PackedPart> of_x = {{name + ".query", dim}};
  std::vector<PackedPart> of_context = {{name + ".key", dim}, {name + ".value", dim}};
  if (spec.option("packed_weights") == 1 && context == AttendsTo::kItself) {
    of_x.insert(of_x.end(), of_context.begin(), of_context.end());
    of_context.clear();
  }
  result.from_x = make_projections(parameters, spec, name, of_x);
  result.from_context = make_projections(parameters, spec, name, of_context);
  result.output =
      make_linear(parameters, name + ".output", dim, dim, Bias::kYes, LinearSplit::kByInputs);
  const Held held{.dimension = 0, .axis = result.parallel.axis};
  result.query_norm = parameters.add(name + ".query_norm.weight", {dim}, near_one(), held);
  result.key_norm = parameters.add(name + ".key_norm.weight", {dim}, near_one(), held);
  return result;
}

Projected project(const Attention& attention, const at::Tensor& x_BND,
                  const at::Tensor& context_BLD) {
  Projected result = project_only(attention, x_BND, context_BLD);
  const Scope scope(scope_names::kQkNorm);
  result.q = norm_over_heads(attention, result.q, attention.query_norm);
  result.k = norm_over_heads(attention, result.k, attention.key_norm);
  return result;
}

bool norm_can_rotate(const Attention& attention) {
  return attention.ops == Ops::kFused && !attention.parallel.axis.is_split();
}

Projected project_and_rotate(const Attention& attention, const at::Tensor& x_BND,
                             const RotaryTable& table) {
  Projected result = project_only(attention, x_BND, x_BND);
  const Scope scope(scope_names::kRotary);
  result.q = fused::rms_norm_rope(result.q, attention.query_norm, table.cosine, table.sine,
                                  attention.norm_eps);
  result.k = fused::rms_norm_rope(result.k, attention.key_norm, table.cosine, table.sine,
                                  attention.norm_eps);
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
    const Scope scope(scope_names::kCore);
    projected.q = tokens_to_heads(std::move(projected.q), attention.exchange);
    projected.k = tokens_to_heads(std::move(projected.k), attention.exchange);
    projected.v = tokens_to_heads(std::move(projected.v), attention.exchange);
    projected.q = projected.q.transpose(1, 2);
    projected.k = projected.k.transpose(1, 2);
    projected.v = projected.v.transpose(1, 2);
    if (mask.defined()) {
      out = std::get<0>(masked_attention(projected.q, projected.k, projected.v, mask));
    } else {
      out =
          std::get<0>(rematch::attention(projected.q, projected.k, projected.v, /*causal=*/false));
    }
    if (attention.exchange.is_split()) {
      out = heads_to_tokens(out.transpose(1, 2), attention.exchange);
    }
  }
  const Scope scope(scope_names::kOutput);
  if (!attention.exchange.is_split()) out = out.transpose(1, 2);
  out = out.reshape({out.size(0), out.size(1), out.size(2) * out.size(3)});
  return dropout(apply_and_leave(attention.output, out, attention.parallel),
                 attention.dropout_ratio);
}

FeedForward make_feed_forward(Parameters& parameters, const std::string& name,
                              const ModelSpec& spec) {
  const std::int64_t dim = spec.at("dim");
  const std::int64_t ffn = spec.at("ffn");
  FeedForward result;
  result.ops = ops_of(spec);
  result.parallel = parameters.tensor_parallel();
  result.up = make_linear(parameters, name + ".up", dim, ffn, Bias::kYes, LinearSplit::kByOutputs);
  result.down =
      make_linear(parameters, name + ".down", ffn, dim, Bias::kYes, LinearSplit::kByInputs);
  result.dropout_ratio = dropout_ratio(spec);
  return result;
}

at::Tensor apply_linear_gelu(const Linear& linear, const at::Tensor& x_BND, Ops ops) {
  if (ops == Ops::kEager) {
    const at::Tensor hidden_BNF = apply_linear(linear, x_BND);
    return at::gelu(hidden_BNF, "tanh");
  }
  at::Tensor hidden = at::linear(x_BND.view({-1, x_BND.size(-1)}), linear.weight.value());
  hidden = fused::bias_gelu(hidden, linear.bias.value());
  return hidden.view({x_BND.size(0), x_BND.size(1), hidden.size(1)});
}

at::Tensor feed_forward(const FeedForward& ffn, const at::Tensor& x_BND) {
  const Scope scope(scope_names::kFfn);
  const at::Tensor hidden_BNF = apply_linear_gelu(ffn.up, enter(x_BND, ffn.parallel), ffn.ops);
  return dropout(apply_and_leave(ffn.down, hidden_BNF, ffn.parallel), ffn.dropout_ratio);
}

at::Tensor modulate(const at::Tensor& x_BND, const at::Tensor& shift_B1D,
                    const at::Tensor& scale_B1D, Ops ops) {
  if (ops == Ops::kFused) {
    return fused::layer_norm(x_BND, scale_B1D, shift_B1D, /*offset=*/1.0, kModulatedNormEps);
  }
  at::Tensor result = layer_norm_float32(x_BND, at::Tensor(), at::Tensor(), kModulatedNormEps);
  const at::Tensor factor = at::add(scale_B1D, 1);
  result = at::mul(result, factor);
  result = at::add(result, shift_B1D);
  return result.to(x_BND.scalar_type());
}

}  // namespace rematch::video
