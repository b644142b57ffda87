// Llama 3's attention: grouped queries, rotary embedding, causal, no biases.
#pragma once

#include <string>

#include "models/layers/linear.h"
#include "models/layers/ops.h"
#include "models/layers/rotary.h"

namespace rematch {

class GroupedQueryAttention {
 public:
  // Parameters `name`.wq, .wk, .wv, .wo; adapters on each if the spec asks for them.
  GroupedQueryAttention(Parameters& parameters, const std::string& name, const ModelSpec& spec);

  // Opens scope "attention". x_TD: batch * tokens rows, sequence after sequence; under ulysses each
  // with this rank's tokens, and under sp a share of those rows.
  at::Tensor forward(const at::Tensor& x_TD, const RotaryTable& table) const;

 private:
  std::int64_t batch_, tokens_, heads_, kv_heads_, head_dim_;  // of this rank
  double dropout_ratio_;
  Ops ops_;
  TensorParallel parallel_;
  RankAxis ulysses_;
  AdaptedLinear wq_, wk_, wv_, wo_;
};

}  // namespace rematch
