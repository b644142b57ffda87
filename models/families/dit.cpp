// One block of the Wan 2.1 DiT. Source: diffusers' WanTransformerBlock.
// Shapes: B batch, N video tokens, L text tokens, D dim.
#include <ATen/ops/add.h>
#include <ATen/ops/chunk.h>
#include <ATen/ops/mul.h>

#include "kernels/fused/gated_add.h"
#include "models/layers/norm.h"
#include "models/scope/names.h"
#include "models/scope/scope.h"
#include "models/video/video_model.h"

namespace rematch::video::dit {
namespace {

constexpr double kEps = 1e-6;
constexpr double kRotaryTheta = 1e4;

// Computes x + branch * gate in float32; the result has x's dtype. With fused ops,
// `rematch::gated_add` replaces all ops.
at::Tensor add_gated(const at::Tensor& x_BND, at::Tensor branch_BND, const at::Tensor& gate_B1D,
                     Ops ops) {
  if (ops == Ops::kFused) return fused::gated_add(x_BND, branch_BND, gate_B1D);
  branch_BND = branch_BND.to(at::kFloat);
  branch_BND = at::mul(branch_BND, gate_B1D);
  at::Tensor sum = x_BND.to(at::kFloat);
  sum = at::add(sum, branch_BND);
  return sum.to(x_BND.scalar_type());
}

class WanBlock {
 public:
  WanBlock(Parameters& parameters, const std::string& name, const ModelSpec& spec);

  static RotaryTable make_table(const Grid& grid, const ModelSpec& spec, at::Device device);
  static constexpr bool kLossOnTokens = false;
  static at::ScalarType modulation_dtype(at::ScalarType /*model*/) { return at::kFloat; }

  // x_BND, the text and the result have the model's dtype.
  at::Tensor forward(at::Tensor x_BND, const Conditions& conditions,
                     const RotaryTable& table) const;

 private:
  at::Tensor self_attend(const at::Tensor& x_BND, const RotaryTable& table) const;
  at::Tensor cross_attend(const at::Tensor& x_BND, const Conditions& conditions) const;

  Weight modulation_;  // [1, 6, D]; added to the modulation computed from the flow time
  Weight cross_norm_weight_, cross_norm_bias_;
  Attention self_, cross_;
  FeedForward ffn_;
};

WanBlock::WanBlock(Parameters& parameters, const std::string& name, const ModelSpec& spec) {
  const std::int64_t dim = spec.at("dim");
  const Held own_tokens{.is_partial_over_tp = parameters.tensor_parallel().splits_tokens};
  modulation_ =
      parameters.add(name + ".modulation", {1, 6, dim}, uniform_by_fan_in(dim), own_tokens);
  self_ = make_attention(parameters, name + ".self_attention", spec, kEps, AttendsTo::kItself);
  cross_norm_weight_ =
      parameters.add(name + ".cross_attention_norm.weight", {dim}, near_one(), own_tokens);
  cross_norm_bias_ = parameters.add(name + ".cross_attention_norm.bias", {dim},
                                    uniform_by_fan_in(dim), own_tokens);
  cross_ = make_attention(parameters, name + ".cross_attention", spec, kEps, AttendsTo::kText);
  ffn_ = make_feed_forward(parameters, name + ".ffn", spec);
}

// Each head has E dimensions. Height and width use 2 * (E / 6) dimensions each, and time uses the
// remaining dimensions.
RotaryTable WanBlock::make_table(const Grid& grid, const ModelSpec& spec, at::Device device) {
  const std::int64_t head_dim = spec.at("dim") / spec.at("heads");
  const std::int64_t plane_dim = 2 * (head_dim / 6);
  RotaryAxis time{{}, rotary_frequencies(head_dim - 2 * plane_dim, kRotaryTheta)};
  RotaryAxis vertical{{}, rotary_frequencies(plane_dim, kRotaryTheta)};
  RotaryAxis horizontal{{}, rotary_frequencies(plane_dim, kRotaryTheta)};
  for (std::int64_t token = 0; token < grid.tokens(); ++token) {
    time.positions.push_back(token / (grid.height * grid.width));
    vertical.positions.push_back(token / grid.width % grid.height);
    horizontal.positions.push_back(token % grid.width);
  }
  return make_rotary_table({time, vertical, horizontal}, device);
}

at::Tensor WanBlock::forward(at::Tensor x_BND, const Conditions& conditions,
                             const RotaryTable& table) const {
  std::vector<at::Tensor> table_B1D;
  {
    const Scope scope(scope_names::kModulation);
    at::Tensor sum_B6D = modulation_.value().to(at::kFloat);
    sum_B6D = at::add(sum_B6D, conditions.modulation_B6D);
    table_B1D = at::chunk(sum_B6D, 6, /*dim=*/1);
  }
  at::Tensor branch_BND;
  {
    const Scope scope(scope_names::kSelfAttentionNorm);
    branch_BND = modulate(x_BND, table_B1D[0], table_B1D[1], self_.ops);
  }
  branch_BND = self_attend(branch_BND, table);
  x_BND = add_gated(x_BND, std::move(branch_BND), table_B1D[2], self_.ops);
  {
    const Scope scope(scope_names::kCrossAttentionNorm);
    branch_BND = layer_norm(x_BND, cross_norm_weight_, cross_norm_bias_, kEps, self_.ops);
  }
  branch_BND = cross_attend(branch_BND, conditions);
  x_BND = at::add(x_BND, branch_BND);
  {
    const Scope scope(scope_names::kFfnNorm);
    branch_BND = modulate(x_BND, table_B1D[3], table_B1D[4], self_.ops);
  }
  branch_BND = feed_forward(ffn_, branch_BND);
  return add_gated(x_BND, std::move(branch_BND), table_B1D[5], self_.ops);
}

at::Tensor WanBlock::self_attend(const at::Tensor& x_BND, const RotaryTable& table) const {
  const Scope scope(scope_names::kSelfAttention);
  const bool norm_rotates = norm_can_rotate(self_);
  Projected projected =
      norm_rotates ? project_and_rotate(self_, x_BND, table) : project(self_, x_BND, x_BND);
  split_heads(self_, projected);
  if (!norm_rotates) {
    const Scope rotary(scope_names::kRotary);
    projected.q = apply_rotary(projected.q, table, self_.ops);
    projected.k = apply_rotary(projected.k, table, self_.ops);
  }
  return attend(self_, std::move(projected), /*mask=*/at::Tensor());
}

at::Tensor WanBlock::cross_attend(const at::Tensor& x_BND, const Conditions& conditions) const {
  const Scope scope(scope_names::kCrossAttention);
  Projected projected = project(cross_, x_BND, conditions.text_BLD);
  split_heads(cross_, projected);
  return attend(cross_, std::move(projected), conditions.text_mask_B11L);
}

}  // namespace
}  // namespace rematch::video::dit

namespace rematch {

std::unique_ptr<Model> make_dit(const ModelSpec& spec, at::Device device) {
  return std::make_unique<video::VideoModel<video::dit::WanBlock>>(spec, device);
}

}  // namespace rematch
