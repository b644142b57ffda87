// One block of the LTX-Video DiT. After diffusers' LTXVideoTransformerBlock: RMSNorm without
// weights, rotary embedding over all heads at once, text attended under a mask, modulation in the
// model's dtype.
#pragma once

#include <string>

#include "models/dit/attention.h"
#include "models/dit/conditions.h"
#include "models/dit/feed_forward.h"

namespace rematch::dit {

class LtxBlock {
 public:
  LtxBlock(Parameters& parameters, const std::string& name, const ModelSpec& spec);

  static RotaryTable make_table(const Grid& grid, const ModelSpec& spec, at::Device device);
  static constexpr bool kLossOnTokens = true;
  static at::ScalarType modulation_dtype(at::ScalarType model) { return model; }

  // Everything is of the model's dtype.
  at::Tensor forward(at::Tensor x_BND, const Conditions& conditions,
                     const RotaryTable& table) const;

 private:
  at::Tensor self_attend(const at::Tensor& x_BND, const RotaryTable& table) const;
  at::Tensor cross_attend(const at::Tensor& x_BND, const Conditions& conditions) const;

  at::Tensor modulation_;  // [1, 6, D], as the time's
  Attention self_, cross_;
  FeedForward ffn_;
};

}  // namespace rematch::dit
