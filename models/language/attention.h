// Llama 3's attention: grouped queries, rotary embedding, causal mask, no biases.
#pragma once

#include <string>

#include "models/layers/context_parallel.h"
#include "models/layers/linear.h"
#include "models/layers/ops.h"
#include "models/layers/rotary.h"

namespace rematch {

class GroupedQueryAttention {
 public:
  // Creates the parameters `name`.wq, .wk, .wv and .wo, each with an adapter if the spec asks for
  // adapters. With packed weights, `name`.wqkv replaces wq, wk and wv.
  GroupedQueryAttention(Parameters& parameters, const std::string& name, const ModelSpec& spec);

  // Opens scope "attention". x_TD has one row per token, sequence by sequence. Under ulysses and
  // cp it holds only this rank's tokens of each sequence, and under sp only this rank's share of
  // the rows.
  at::Tensor forward(const at::Tensor& x_TD, const RotaryTable& table) const;

 private:
  // tokens_, heads_ and kv_heads_ count this rank's share
  std::int64_t batch_, tokens_, heads_, kv_heads_, head_dim_;
  double dropout_ratio_;
  Ops ops_;
  TensorParallel parallel_;
  RankAxis ulysses_;
  ContextParallel context_;
  JointLinear wqkv_;
  AdaptedLinear wo_;
};

}  // namespace rematch
