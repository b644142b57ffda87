// One block of the Wan 2.1 DiT. After diffusers' WanTransformerBlock.
#pragma once

#include <string>

#include "models/dit/attention.h"
#include "models/dit/conditions.h"
#include "models/dit/feed_forward.h"

namespace rematch::dit {

// Wan's adaptive layer norm: LayerNorm without weights, times (1 + scale), plus shift, all in
// float32; the result has x's dtype. shift and scale are float32. Fused: what follows the norm is
// `rematch::modulate`.
at::Tensor modulate(const at::Tensor& x_BND, const at::Tensor& shift_B1D,
                    const at::Tensor& scale_B1D, Ops ops);

class WanBlock {
 public:
  WanBlock(Parameters& parameters, const std::string& name, const ModelSpec& spec);

  static RotaryTable make_table(const Grid& grid, const ModelSpec& spec, at::Device device);
  static constexpr bool kLossOnTokens = false;
  static at::ScalarType modulation_dtype(at::ScalarType /*model*/) { return at::kFloat; }

  // x_BND, the text and the result are of the model's dtype.
  at::Tensor forward(at::Tensor x_BND, const Conditions& conditions,
                     const RotaryTable& table) const;

 private:
  at::Tensor self_attend(const at::Tensor& x_BND, const RotaryTable& table) const;
  at::Tensor cross_attend(const at::Tensor& x_BND, const Conditions& conditions) const;

  at::Tensor modulation_;  // [1, 6, D], as the time's
  at::Tensor cross_norm_weight_, cross_norm_bias_;
  Attention self_, cross_;
  FeedForward ffn_;
};

}  // namespace rematch::dit
