// The parts of video transformers' blocks: attention with queries from one sequence, keys
// and values from one, normalised over all heads at once; a feed-forward; adaptive layer norm.
// Biased linears.
#pragma once

#include <cstdint>
#include <string>

#include "models/layers/linear.h"
#include "models/layers/ops.h"
#include "models/layers/rotary.h"

namespace rematch::video {

// The inputs of every block beside the video's tokens.
struct Conditions {
  at::Tensor text_BLD;
  at::Tensor text_mask_B11L;  // added to the scores of cross attention; undefined: no mask
  at::Tensor modulation_B6D;  // from the flow time: shift, scale, gate of attention, then of ffn
};

// A video's tokens in the order frame, row, column.
struct Grid {
  std::int64_t batch, channels, frames, height, width;
  std::int64_t tokens() const { return frames * height * width; }
};

struct Attention {
  std::int64_t heads = 0;  // of this rank
  double norm_eps = 0.0;
  double dropout_ratio = 0.0;
  Ops ops = Ops::kEager;
  TensorParallel parallel;
  RankAxis exchange;  // over which attention exchanges tokens for heads
  Linear query, key, value, output;
  Weight query_norm, key_norm;
};

// Parameters `name`.query, .key, .value, .output, .query_norm, .key_norm.
// Ulysses splits the video's tokens over ranks, but every rank has the whole text.
enum class AttendsTo : std::uint8_t { kItself, kText };
Attention make_attention(Parameters& parameters, const std::string& name, const ModelSpec& spec,
                         double norm_eps, AttendsTo context);

struct Projected {
  // This rank's heads: [B, N, D], [B, L, D]; or with split heads
  at::Tensor q, k, v;  // [B, N, H, E], [B, L, H, E]
};

// Scopes "qkv", "qk_norm".
Projected project(const Attention& attention, const at::Tensor& x_BND,
                  const at::Tensor& context_BLD);

// Views of all three.
void split_heads(const Attention& attention, Projected& projected);

// Scopes "core", "output". `projected` has split heads. `mask` is added to the scores, or
// undefined: with one the op is masked_attention.
at::Tensor attend(const Attention& attention, Projected projected, const at::Tensor& mask);

// down (gelu (up x)), biased.
struct FeedForward {
  TensorParallel parallel;
  Linear up, down;
  double dropout_ratio = 0.0;
};

// Parameters `name`.up, .down.
FeedForward make_feed_forward(Parameters& parameters, const std::string& name,
                              const ModelSpec& spec);

// Scope "ffn".
at::Tensor feed_forward(const FeedForward& ffn, const at::Tensor& x_BND);

// Wan's adaptive layer norm: LayerNorm without weights, times (1 + scale), plus shift, all in
// float32; the result has x's dtype. shift and scale are float32. Fused: what follows the norm is
// `rematch::modulate`.
at::Tensor modulate(const at::Tensor& x_BND, const at::Tensor& shift_B1D,
                    const at::Tensor& scale_B1D, Ops ops);

}  // namespace rematch::video
