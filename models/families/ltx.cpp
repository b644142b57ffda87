// One block of the LTX-Video DiT: RMSNorm without weights, rotary embedding over all heads at once,
// masked attention to the text, modulation in the model's dtype. Source: diffusers'
// LTXVideoTransformerBlock.
// Shapes: B batch, N video tokens, L text tokens, D dim.
#include <ATen/ops/add.h>
#include <ATen/ops/chunk.h>
#include <ATen/ops/mul.h>

#include <array>
#include <cmath>
#include <numbers>

#include "kernels/fused/gated_add.h"
#include "kernels/fused/modulate.h"
#include "models/layers/norm.h"
#include "models/scope/names.h"
#include "models/scope/scope.h"
#include "models/video/video_model.h"

namespace rematch::video::ltx {
namespace {

constexpr double kEps = 1e-6;
constexpr double kAttentionNormEps = 1e-5;
constexpr double kRotaryTheta = 1e4;

// A token's position along an axis is divided by the base extent of the axis: 20 seconds for
// frames, 2048 pixels for rows and columns. A latent frame covers 8 frames, at 25 frames per
// second.
constexpr double kFrameShare = 8.0 / 25.0 / 20.0;
constexpr double kPlaneShare = 32.0 / 2048.0;  // 32 pixels per latent

at::Tensor modulate_rms(const at::Tensor& x_BND, const at::Tensor& shift_B1D,
                        const at::Tensor& scale_B1D, Ops ops) {
  at::Tensor result = rms_norm(x_BND, at::Tensor(), kEps, ops);
  if (ops == Ops::kFused) {
    return fused::modulate(result, shift_B1D, scale_B1D, x_BND.scalar_type());
  }
  const at::Tensor factor = at::add(scale_B1D, 1);
  result = at::mul(result, factor);
  return at::add(result, shift_B1D);
}

at::Tensor add_gated(const at::Tensor& x_BND, at::Tensor branch_BND, const at::Tensor& gate_B1D,
                     Ops ops) {
  if (ops == Ops::kFused) return fused::gated_add(x_BND, branch_BND, gate_B1D);
  branch_BND = at::mul(branch_BND, gate_B1D);
  return at::add(x_BND, branch_BND);
}

// Rotates x_BND across all heads at once, so that each head has its own frequencies.
at::Tensor rotate(const at::Tensor& x_BND, const RotaryTable& table, Ops ops) {
  at::Tensor x_BN1D = x_BND.unsqueeze(2);
  x_BN1D = apply_rotary(x_BN1D, table, ops);
  return x_BN1D.squeeze(2);
}

class LtxBlock {
 public:
  LtxBlock(Parameters& parameters, const std::string& name, const ModelSpec& spec);

  static RotaryTable make_table(const Grid& grid, const ModelSpec& spec, at::Device device);
  static constexpr bool kLossOnTokens = true;
  static at::ScalarType modulation_dtype(at::ScalarType model) { return model; }

  // All tensors have the model's dtype.
  at::Tensor forward(at::Tensor x_BND, const Conditions& conditions,
                     const RotaryTable& table) const;

 private:
  at::Tensor self_attend(const at::Tensor& x_BND, const RotaryTable& table) const;
  at::Tensor cross_attend(const at::Tensor& x_BND, const Conditions& conditions) const;

  Weight modulation_;  // [1, 6, D]; added to the modulation computed from the flow time
  Attention self_, cross_;
  FeedForward ffn_;
};

LtxBlock::LtxBlock(Parameters& parameters, const std::string& name, const ModelSpec& spec) {
  const std::int64_t dim = spec.at("dim");
  const Held own_tokens{.is_partial_over_tp = parameters.tensor_parallel().splits_tokens};
  modulation_ =
      parameters.add(name + ".modulation", {1, 6, dim}, uniform_by_fan_in(dim), own_tokens);
  self_ = make_attention(parameters, name + ".self_attention", spec, kAttentionNormEps,
                         AttendsTo::kItself);
  cross_ = make_attention(parameters, name + ".cross_attention", spec, kAttentionNormEps,
                          AttendsTo::kText);
  ffn_ = make_feed_forward(parameters, name + ".ffn", spec);
}

// Each of the axes frame, row and column has D / 6 frequencies, from pi / 2 to theta pi / 2. Pairs
// take the axes in turn: frame, row, column. If D is not a multiple of 6, the leftover pairs come
// first and are not rotated.
RotaryTable LtxBlock::make_table(const Grid& grid, const ModelSpec& spec, at::Device device) {
  constexpr std::int64_t kAxes = 3;
  const std::int64_t dim = spec.at("dim");
  const std::int64_t num_frequencies = dim / (2 * kAxes);
  const std::int64_t num_pairs = dim / 2;
  const std::int64_t num_still = num_pairs - kAxes * num_frequencies;
  const auto last = static_cast<double>(std::max<std::int64_t>(num_frequencies - 1, 1));
  const auto angle = [=](std::int64_t token, std::int64_t pair) {
    if (pair < num_still) return 0.0;
    const std::int64_t index = (pair - num_still) / kAxes;
    const std::array<double, kAxes> places = {
        static_cast<double>(token / (grid.height * grid.width)) * kFrameShare,
        static_cast<double>(token / grid.width % grid.height) * kPlaneShare,
        static_cast<double>(token % grid.width) * kPlaneShare};
    const double place = places[static_cast<std::size_t>((pair - num_still) % kAxes)];
    const double exponent = static_cast<double>(index) / last;
    return std::pow(kRotaryTheta, exponent) * (std::numbers::pi / 2.0) * (2.0 * place - 1.0);
  };
  // Keeps only the pairs of this rank's heads.
  const RankAxis tp = rank_axis(spec, "tp");
  const std::int64_t pairs_of_rank = num_pairs / tp.size;
  const std::int64_t first = tp.position * pairs_of_rank;
  const auto angle_of_rank = [&](std::int64_t token, std::int64_t pair) {
    return angle(token, first + pair);
  };
  return make_rotary_table(grid.tokens(), pairs_of_rank, angle_of_rank, device);
}

at::Tensor LtxBlock::forward(at::Tensor x_BND, const Conditions& conditions,
                             const RotaryTable& table) const {
  std::vector<at::Tensor> table_B1D;
  {
    const Scope scope(scope_names::kModulation);
    const at::Tensor sum_B6D = at::add(modulation_, conditions.modulation_B6D);
    table_B1D = at::chunk(sum_B6D, 6, /*dim=*/1);
  }
  at::Tensor branch_BND;
  {
    const Scope scope(scope_names::kSelfAttentionNorm);
    branch_BND = modulate_rms(x_BND, table_B1D[0], table_B1D[1], self_.ops);
  }
  branch_BND = self_attend(branch_BND, table);
  x_BND = add_gated(x_BND, std::move(branch_BND), table_B1D[2], self_.ops);
  branch_BND = cross_attend(x_BND, conditions);
  x_BND = at::add(x_BND, branch_BND);
  {
    const Scope scope(scope_names::kFfnNorm);
    branch_BND = modulate_rms(x_BND, table_B1D[3], table_B1D[4], self_.ops);
  }
  branch_BND = feed_forward(ffn_, branch_BND);
  return add_gated(x_BND, std::move(branch_BND), table_B1D[5], self_.ops);
}

at::Tensor LtxBlock::self_attend(const at::Tensor& x_BND, const RotaryTable& table) const {
  const Scope scope(scope_names::kSelfAttention);
  const bool norm_rotates = norm_can_rotate(self_);
  Projected projected =
      norm_rotates ? project_and_rotate(self_, x_BND, table) : project(self_, x_BND, x_BND);
  if (!norm_rotates) {
    const Scope rotary(scope_names::kRotary);
    projected.q = rotate(projected.q, table, self_.ops);
    projected.k = rotate(projected.k, table, self_.ops);
  }
  split_heads(self_, projected);
  return attend(self_, std::move(projected), /*mask=*/at::Tensor());
}

// Cross attention, unlike self-attention, uses the residual stream without a norm.
at::Tensor LtxBlock::cross_attend(const at::Tensor& x_BND, const Conditions& conditions) const {
  const Scope scope(scope_names::kCrossAttention);
  Projected projected = project(cross_, x_BND, conditions.text_BLD);
  split_heads(cross_, projected);
  return attend(cross_, std::move(projected), conditions.text_mask_B11L);
}

}  // namespace
}  // namespace rematch::video::ltx

namespace rematch {

std::unique_ptr<Model> make_ltx(const ModelSpec& spec, at::Device device) {
  return std::make_unique<video::VideoModel<video::ltx::LtxBlock>>(spec, device);
}

}  // namespace rematch
