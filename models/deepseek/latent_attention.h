// DeepSeek's multi-head latent attention: keys and values are made from one narrow latent, and all
// heads share one rotated key part. Value heads, narrower than query heads, are padded to their
// width, so that it is one attention op.
#pragma once

#include <string>

#include "models/layers/linear.h"
#include "models/layers/ops.h"
#include "models/layers/rotary.h"

namespace rematch {

// DeepSeek-V3 16B's table for the rotated part of a head: theta 1e4, stretched by YaRN (factor 40,
// from a context of 4096).
RotaryTable make_yarn_table(std::int64_t num_tokens, std::int64_t rope_dim, at::Device device);

class LatentAttention {
 public:
  // Parameters `name`.wq, .wkv_a, .kv_norm, .wkv_b, .wo.
  LatentAttention(Parameters& parameters, const std::string& name, const ModelSpec& spec);

  // Opens scope "attention". x_TD: batch * tokens rows, sequence after sequence.
  at::Tensor forward(const at::Tensor& x_TD, const RotaryTable& table) const;

 private:
  struct Heads {
    at::Tensor q, k, v;  // [B, S, H, N + P], v padded
  };

  at::Tensor make_queries(const at::Tensor& x_TD, const RotaryTable& table) const;
  void make_keys_and_values(const at::Tensor& x_TD, const RotaryTable& table, Heads& heads) const;
  at::Tensor attend(Heads heads) const;

  std::int64_t batch_, tokens_, heads_, latent_dim_, nope_dim_, rope_dim_, value_dim_;
  double dropout_ratio_;
  Ops ops_;
  Linear wq_, wkv_a_, wkv_b_, wo_;
  at::Tensor kv_norm_;
};

}  // namespace rematch
