// Attention of video transformers: queries from one sequence, keys and values from one, normalised
// over all heads at once, biased linears.
#pragma once

#include <string>

#include "models/layers/linear.h"
#include "models/layers/ops.h"

namespace rematch::dit {

struct Attention {
  std::int64_t heads = 0;
  double norm_eps = 0.0;
  double dropout_ratio = 0.0;
  Ops ops = Ops::kEager;
  Linear query, key, value, output;
  at::Tensor query_norm, key_norm;
};

// Parameters `name`.query, .key, .value, .output, .query_norm, .key_norm.
Attention make_attention(Parameters& parameters, const std::string& name, const ModelSpec& spec,
                         double norm_eps);

struct Projected {
  at::Tensor q, k, v;  // [B, N, D], [B, L, D]; or with split heads [B, N, H, E], [B, L, H, E]
};

// Scopes "qkv", "qk_norm".
Projected project(const Attention& attention, const at::Tensor& x_BND,
                  const at::Tensor& context_BLD);

// Views of all three.
void split_heads(const Attention& attention, Projected& projected);

// Scopes "core", "output". `projected` has split heads. `mask` is added to the scores, or
// undefined: with one the op is masked_attention.
at::Tensor attend(const Attention& attention, Projected projected, const at::Tensor& mask);

}  // namespace rematch::dit
