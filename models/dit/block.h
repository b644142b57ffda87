// One block of the Wan 2.1 DiT. After diffusers' WanTransformerBlock.
#pragma once

#include <string>

#include "models/layers/linear.h"
#include "models/layers/rotary.h"

namespace rematch::dit {

// Wan's adaptive layer norm: LayerNorm without weights, times (1 + scale), plus shift, all in
// float32; the result has x's dtype. shift and scale are float32.
at::Tensor modulate(const at::Tensor& x_BND, const at::Tensor& shift_B1D,
                    const at::Tensor& scale_B1D);

// Queries from one sequence, keys and values from one, normalised over all heads at once.
struct Attention {
  std::int64_t heads = 0;
  Linear query, key, value, output;
  at::Tensor query_norm, key_norm;
};

class Block {
 public:
  Block(Parameters& parameters, const std::string& name, const ModelSpec& spec);

  // x_BND, text_BLD and the result are of the model's dtype, time_B6D float32.
  at::Tensor forward(at::Tensor x_BND, const at::Tensor& text_BLD, const at::Tensor& time_B6D,
                     const RotaryTable& table) const;

 private:
  at::Tensor self_attend(const at::Tensor& x_BND, const RotaryTable& table) const;
  at::Tensor cross_attend(const at::Tensor& x_BND, const at::Tensor& text_BLD) const;
  at::Tensor feed_forward(const at::Tensor& x_BND) const;

  at::Tensor modulation_;  // [1, 6, D]: shift, scale, gate of attention, then of ffn
  at::Tensor cross_norm_weight_, cross_norm_bias_;
  Attention self_, cross_;
  Linear up_, down_;
};

}  // namespace rematch::dit
