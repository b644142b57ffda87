// Code shared by diffusion transformers for video: modulation from the time embedding, text
// conditioning, patches and flow matching. Each family supplies its block.
// Shapes: B batch, C channels, f h w the token grid, N = f h w tokens, L text tokens, D dim,
// P = C patch_extent^2 values of a patch.
#pragma once

#include <ATen/ops/_unsafe_view.h>
#include <ATen/ops/add.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/chunk.h>
#include <ATen/ops/clone.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/sub.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "models/scope/names.h"
#include "models/scope/scope.h"
#include "models/video/parts.h"

namespace rematch::video {

inline constexpr double kTimeTheta = 1e4;
inline constexpr double kTimeScale = 1000.0;  // converts the flow time, from 0 to 1, to a timestep
// subtracted from the scores of padding: larger than every score, but finite in bfloat16
inline constexpr double kMasked = 10'000.0;

// Returns [1, freq_dim / 2] with theta^(-i / (freq_dim / 2)), computed in double and rounded to
// float32.
inline at::Tensor make_time_frequencies(std::int64_t freq_dim, at::Device device) {
  const std::int64_t half = freq_dim / 2;
  const auto options = at::TensorOptions().dtype(at::kFloat);
  if (device.is_meta()) return at::empty({1, half}, options.device(device));
  const at::Tensor frequencies = at::empty({1, half}, options);
  auto* elements = frequencies.data_ptr<float>();
  for (std::int64_t index = 0; index < half; ++index) {
    const double exponent = static_cast<double>(index) / static_cast<double>(half);
    elements[index] = static_cast<float>(1.0 / std::pow(kTimeTheta, exponent));
  }
  return frequencies.to(device);
}

// Reshapes with a copy even if a view would suffice, because reshape would run different ops on CPU
// and on meta.
inline at::Tensor copy_as(const at::Tensor& x, at::IntArrayRef sizes) {
  const at::Tensor copy = at::clone(x, at::MemoryFormat::Contiguous);
  return at::_unsafe_view(copy, sizes);
}

// The tensors of a batch, all float32. A patch has e x e latent pixels:
//   latents and noise  [batch, channels, frames, height * e, width * e]
//   flow time          [batch], in (0, 1)
//   text               [batch, text_tokens, text_dim]
//   mask               [batch, text_tokens]: 1 for a word, 0 for padding; only if text is masked
//
// Under ulysses, each rank has a part of the tokens in the whole model. Under sp, each rank of tp
// has a part of the tokens in the residual stream.
//
// A Block must define a constructor (parameters, name, spec) and forward(x_BND, conditions, table).
// It must also define static functions make_table(grid, spec, device) and modulation_dtype(model's
// dtype). Its constant kLossOnTokens must be true if the loss compares tokens, and false if the
// loss compares reassembled latents.
template <typename Block>
class VideoModel final : public Model {
 public:
  VideoModel(const ModelSpec& spec, at::Device device)
      : grid_{spec.at("batch"), spec.at("channels"), spec.at("frames"), spec.at("height"),
              spec.at("width")},
        patch_extent_(video_layout(spec.family)->patch_extent),
        dtype_(dtype_of(spec)),
        ops_(ops_of(spec)),
        ulysses_(rank_axis(spec, "ulysses")),
        parameters_(spec, device) {
    const std::int64_t dim = spec.at("dim");
    if (spec.option("sp") == 1) sequence_ = rank_axis(spec, "tp");
    table_ = rows_of_rank(Block::make_table(grid_, spec, device), ulysses_);
    time_frequencies_ = make_time_frequencies(spec.at("freq_dim"), device);
    patch_ = make("embed.patch", patch_values(), dim);
    time_in_ = make("embed.time.in", spec.at("freq_dim"), dim);
    time_out_ = make("embed.time.out", dim, dim);
    time_projection_ = make("embed.time.projection", dim, 6 * dim);
    text_in_ = make("embed.text.in", spec.at("text_dim"), dim);
    text_out_ = make("embed.text.out", dim, dim);
    for (std::int64_t layer = 0; layer < spec.at("layers"); ++layer) {
      const std::string name = "blocks." + std::to_string(layer);
      blocks_.emplace_back(parameters_, name, spec);
      block_weights_.push_back(parameters_.scope(name));
    }
    head_modulation_ = parameters_.add("head.modulation", {1, 2, dim}, uniform_by_fan_in(dim));
    output_ = make("head.output", dim, patch_values());
    embed_weights_ = parameters_.scope("embed");
    head_weights_ = parameters_.scope("head");
  }

  at::Tensor loss(const Batch& batch) override {
    const at::Tensor& latents = batch.tensors.at(0);
    const at::Tensor& noise = batch.tensors.at(1);
    Embedded embedded = embed(batch);
    at::Tensor x_BND = std::move(embedded.video_BND);
    for (std::size_t layer = 0; layer < blocks_.size(); ++layer) {
      const Scope scope(scope_names::kBlocks, static_cast<int>(layer));
      x_BND = run_block(
          [this, layer, conditions = embedded.conditions](at::Tensor x) {
            const GatheredWeights gathered(block_weights_[layer]);
            return blocks_[layer].forward(std::move(x), conditions, table_);
          },
          std::move(x_BND));
    }
    const at::Tensor velocity = head(std::move(x_BND), embedded.time_BD);
    return flow_matching_loss(velocity, latents, noise);
  }

  void finish_gradients() override { parameters_.finish_gradients(); }

  const std::vector<NamedTensor>& parameters() const override { return parameters_.list(); }
  const std::vector<NamedTensor>& frozen() const override { return parameters_.frozen_list(); }

 private:
  struct Embedded {
    at::Tensor video_BND;
    at::Tensor time_BD;  // float32
    Conditions conditions;
  };

  Linear make(const std::string& name, std::int64_t inputs, std::int64_t outputs) {
    return make_linear(parameters_, name, inputs, outputs, Bias::kYes);
  }

  std::int64_t patch_values() const { return grid_.channels * patch_extent_ * patch_extent_; }

  Embedded embed(const Batch& batch) const {
    const Scope scope(scope_names::kEmbed);
    const GatheredWeights gathered(embed_weights_);
    Embedded embedded;
    embedded.video_BND = embed_video(batch.tensors.at(0), batch.tensors.at(1), batch.tensors.at(2));
    embedded.video_BND = own_rows(std::move(embedded.video_BND), sequence_);
    embed_time(batch.tensors.at(2), embedded);
    embedded.conditions.text_BLD = embed_text(batch.tensors.at(3));
    if (batch.tensors.size() > 4) {
      embedded.conditions.text_mask_B11L = embed_mask(batch.tensors.at(4));
    }
    return embedded;
  }

  // Interpolates from latents to noise at the flow time, and cuts the result into patches, whose
  // values are ordered (c, y, x). A linear over these patches equals Wan's convolution, whose
  // kernel is as large as its stride.
  at::Tensor embed_video(const at::Tensor& latents, const at::Tensor& noise,
                         const at::Tensor& time_B) const {
    const Scope scope(scope_names::kPatch);
    const at::Tensor time = time_B.view({grid_.batch, 1, 1, 1, 1});
    at::Tensor step = at::sub(noise, latents);
    step = at::mul(step, time);
    at::Tensor x = at::add(latents, step);
    x = tokens_of_rank(cut_patches(std::move(x), {0, 2, 3, 5, 1, 4, 6}));
    x = x.to(dtype_);
    return apply_linear(patch_, x);
  }

  // Cuts latents into tokens. `order` permutes the dimensions B C f h y w x into the order of the
  // result.
  at::Tensor cut_patches(at::Tensor x, at::IntArrayRef order) const {
    x = x.view({grid_.batch, grid_.channels, grid_.frames, grid_.height, patch_extent_, grid_.width,
                patch_extent_});
    x = x.permute(order);
    return copy_as(x, {grid_.batch, grid_.tokens(), patch_values()});
  }

  // Returns this rank's part of the tokens if ulysses splits them.
  at::Tensor tokens_of_rank(at::Tensor x_BNP) const {
    if (!ulysses_.is_split()) return x_BNP;
    const std::int64_t count = x_BNP.size(1) / ulysses_.size;
    x_BNP = x_BNP.narrow(1, ulysses_.position * count, count);
    return at::clone(x_BNP, at::MemoryFormat::Contiguous);
  }

  void embed_time(const at::Tensor& time_B, Embedded& embedded) const {
    const Scope scope(scope_names::kTime);
    at::Tensor angle = time_B.view({grid_.batch, 1});
    angle = at::mul(angle, kTimeScale);
    angle = at::mul(angle, time_frequencies_);
    const at::Tensor cosine = at::cos(angle);
    const at::Tensor sine = at::sin(angle);
    at::Tensor x = at::cat({cosine, sine}, -1);
    x = x.to(dtype_);
    x = apply_linear(time_in_, x);
    x = at::silu(x);
    x = apply_linear(time_out_, x);
    embedded.time_BD = x.to(at::kFloat);
    x = at::silu(x);
    x = apply_linear(time_projection_, x);
    x = x.view({grid_.batch, 6, x.size(1) / 6});
    x = x.to(Block::modulation_dtype(dtype_));
    // Every rank modulates only its own tokens, so copy() sums the gradient over the ranks.
    embedded.conditions.modulation_B6D = copy(std::move(x), sequence_);
  }

  at::Tensor embed_text(const at::Tensor& text) const {
    const Scope scope(scope_names::kText);
    at::Tensor x = text.to(dtype_);
    x = apply_linear_gelu(text_in_, x, ops_);
    return apply_linear(text_out_, x);
  }

  // Returns 0 for a word and a large negative number for padding.
  at::Tensor embed_mask(const at::Tensor& mask_BL) const {
    const Scope scope(scope_names::kMask);
    at::Tensor bias = at::sub(mask_BL, 1);
    bias = at::mul(bias, kMasked);
    bias = bias.to(dtype_);
    return bias.view({bias.size(0), 1, 1, bias.size(1)});
  }

  // Returns the predicted velocity in float32, as latents or as tokens. Values of a patch are
  // ordered (y, x, c), as in Wan.
  at::Tensor head(at::Tensor x_BND, const at::Tensor& time_BD) const {
    const Scope scope(scope_names::kHead);
    const GatheredWeights gathered(head_weights_);
    x_BND = gather_alike(std::move(x_BND), sequence_);
    at::Tensor table_B2D = head_modulation_.value().to(at::kFloat);
    const at::Tensor time_B1D = time_BD.unsqueeze(1);
    table_B2D = at::add(table_B2D, time_B1D);
    const std::vector<at::Tensor> table_B1D = at::chunk(table_B2D, 2, /*dim=*/1);
    x_BND = modulate(x_BND, table_B1D[0], table_B1D[1], ops_);
    at::Tensor x = apply_linear(output_, x_BND);
    if (loss_is_on_tokens()) return x.to(at::kFloat);
    x = x.view({grid_.batch, grid_.frames, grid_.height, grid_.width, patch_extent_, patch_extent_,
                grid_.channels});
    x = x.permute({0, 6, 1, 2, 4, 3, 5});
    x = copy_as(x, {grid_.batch, grid_.channels, grid_.frames, grid_.height * patch_extent_,
                    grid_.width * patch_extent_});
    return x.to(at::kFloat);
  }

  // Returns the mean squared difference between the velocity and (noise - latents).
  at::Tensor flow_matching_loss(const at::Tensor& velocity, const at::Tensor& latents,
                                const at::Tensor& noise) const {
    const Scope scope(scope_names::kLoss);
    at::Tensor error = at::sub(noise, latents);
    if (loss_is_on_tokens()) error = tokens_of_rank(cut_patches(std::move(error), head_order()));
    error = at::sub(velocity, error);
    error = at::pow(error, 2);
    return at::mean(error);
  }

  // Under ulysses the loss is always computed on tokens, because a rank that holds only part of the
  // tokens cannot reassemble latents.
  bool loss_is_on_tokens() const { return Block::kLossOnTokens || ulysses_.is_split(); }

  // Returns the permutation that orders the values of a patch: (c, y, x) if the family's loss is on
  // tokens, else (y, x, c).
  static std::vector<std::int64_t> head_order() {
    if (Block::kLossOnTokens) return {0, 2, 3, 5, 1, 4, 6};
    return {0, 2, 3, 5, 4, 6, 1};
  }

  Grid grid_;
  std::int64_t patch_extent_;
  at::ScalarType dtype_;
  Ops ops_;
  // axes over which ulysses and sp split the tokens
  RankAxis ulysses_, sequence_;
  Parameters parameters_;
  RotaryTable table_;
  at::Tensor time_frequencies_;
  Weight head_modulation_;
  Linear patch_, time_in_, time_out_, time_projection_, text_in_, text_out_, output_;
  std::vector<Block> blocks_;
  ScopeWeights embed_weights_, head_weights_;
  std::vector<ScopeWeights> block_weights_;
};

}  // namespace rematch::video
