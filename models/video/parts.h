// The parts of a video transformer's block: attention, a feed-forward and adaptive layer norm. In
// attention, keys and values may come from a different sequence from the queries. Queries and keys
// are normalised over all heads at once. Linears have biases.
#pragma once

#include <cstdint>
#include <string>

#include "models/layers/linear.h"
#include "models/layers/ops.h"
#include "models/layers/rotary.h"

namespace rematch::video {

// The inputs of every block, except the video's tokens.
struct Conditions {
  at::Tensor text_BLD;
  at::Tensor text_mask_B11L;  // added to the scores of cross attention; undefined without a mask
  // computed from the flow time: shift, scale and gate of attention, then those of ffn
  at::Tensor modulation_B6D;
};

// A video's token grid. Tokens are ordered by frame, row, column.
struct Grid {
  std::int64_t batch, channels, frames, height, width;
  std::int64_t tokens() const { return frames * height * width; }
};

struct Attention {
  std::int64_t heads = 0;  // number of heads on this rank
  double norm_eps = 0.0;
  double dropout_ratio = 0.0;
  Ops ops = Ops::kEager;
  TensorParallel parallel;
  RankAxis exchange;  // axis over which attention exchanges tokens for heads
  // Together they give query, key and value. from_x gives the query, and the other two as well if
  // weights are packed and x is the context.
  JointLinear from_x, from_context;
  Linear output;
  Weight query_norm, key_norm;
};

// The source of keys and values; kText is the text. Ulysses splits the video's tokens over ranks,
// but every rank has the whole text.
enum class AttendsTo : std::uint8_t { kItself, kText };
// Creates the parameters `name`.query, .key, .value, .output, .query_norm and .key_norm. With
// packed weights, `name`.qkv replaces query, key and value. In attention to the text, `name`.kv
// replaces key and value.
Attention make_attention(Parameters& parameters, const std::string& name, const ModelSpec& spec,
                         double norm_eps, AttendsTo context);

struct Projected {
  // The tensors hold this rank's heads. q is [B, N, D]; k and v are [B, L, D]. split_heads()
  // changes q to [B, N, H, E], and k and v to [B, L, H, E].
  at::Tensor q, k, v;
};

// Projects x and the context to queries, keys and values, and normalises queries and keys. Opens
// scopes "qkv" and "qk_norm".
Projected project(const Attention& attention, const at::Tensor& x_BND,
                  const at::Tensor& context_BLD);

// Whether one op can normalise and rotate queries and keys: with fused ops, unless tp splits the
// norms.
bool norm_can_rotate(const Attention& attention);

// Projects x to queries, keys and values. `rematch::rms_norm_rope` normalises and rotates queries
// and keys. The table has the pairs of one head, or of all heads. Opens scopes "qkv" and "rotary".
// norm_can_rotate() must be true.
Projected project_and_rotate(const Attention& attention, const at::Tensor& x_BND,
                             const RotaryTable& table);

// Replaces q, k and v by views with split heads.
void split_heads(const Attention& attention, Projected& projected);

// Opens scopes "core" and "output". `projected` must have split heads. If `mask` is defined, it is
// added to the scores, and the op is masked_attention.
at::Tensor attend(const Attention& attention, Projected projected, const at::Tensor& mask);

// Computes down (gelu (up x)), with biases.
struct FeedForward {
  Ops ops = Ops::kEager;
  TensorParallel parallel;
  Linear up, down;
  double dropout_ratio = 0.0;
};

// Creates the parameters `name`.up and `name`.down.
FeedForward make_feed_forward(Parameters& parameters, const std::string& name,
                              const ModelSpec& spec);

// Returns gelu(linear(x)) with GELU's tanh approximation, for a contiguous x_BND. With fused ops,
// the linear runs without its bias, and `rematch::bias_gelu` adds the bias.
at::Tensor apply_linear_gelu(const Linear& linear, const at::Tensor& x_BND, Ops ops);

// Opens scope "ffn".
at::Tensor feed_forward(const FeedForward& ffn, const at::Tensor& x_BND);

// Wan's adaptive layer norm: LayerNorm without weights, times (1 + scale), plus shift, all in
// float32. The result has x's dtype; shift and scale are float32. With fused ops,
// `rematch::layer_norm` replaces all these ops.
at::Tensor modulate(const at::Tensor& x_BND, const at::Tensor& shift_B1D,
                    const at::Tensor& scale_B1D, Ops ops);

}  // namespace rematch::video
