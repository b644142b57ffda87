// Rotary position embedding over interleaved pairs (2i, 2i+1), as in Llama 3 and Wan.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "models/layers/ops.h"
#include "models/preset/parallel.h"

namespace rematch {

// Constants, each float32 [tokens, 1, head_dim / 2]. Angles, cosines and sines are computed in
// double.
struct RotaryTable {
  at::Tensor cosine;
  at::Tensor sine;
};

// One position axis. Token t has position positions[t], and pair i is rotated by positions[t] *
// frequencies[i].
struct RotaryAxis {
  std::vector<std::int64_t> positions;
  std::vector<double> frequencies;
};

// Returns theta^(-2i / head_dim) for each pair i.
std::vector<double> rotary_frequencies(std::int64_t head_dim, double theta);

// Concatenates the axes' pairs. All axes have the same number of positions. On meta the table has
// no data.
RotaryTable make_rotary_table(const std::vector<RotaryAxis>& axes, at::Device device);

// Makes a table for any other rule: angle(token, pair) is the rotation of that pair.
RotaryTable make_rotary_table(
    std::int64_t num_tokens, std::int64_t num_pairs,
    const std::function<double(std::int64_t token, std::int64_t pair)>& angle, at::Device device);

// Returns the table's rows for the tokens of spec.rank if `axis` splits the tokens.
RotaryTable rows_of_rank(RotaryTable table, const RankAxis& axis);

// Llama 3.1's table: theta 5e5 and stretched long wavelengths.
RotaryTable make_llama_table(std::int64_t num_tokens, std::int64_t head_dim, at::Device device);

// DeepSeek-V3 16B's table for the rotated part of a head: theta 1e4, stretched by YaRN (Peng et al.
// 2023) from a context of 4096.
inline constexpr double kYarnFactor = 40.0;
RotaryTable make_yarn_table(std::int64_t num_tokens, std::int64_t rope_dim, at::Device device);

// Rotates x_BSHD in float32 and returns x's dtype: `view unbind mul mul sub mul mul add stack
// view`. x must be contiguous within each head. Fused: `rematch::rope`.
at::Tensor apply_rotary(const at::Tensor& x_BSHD, const RotaryTable& table, Ops ops = Ops::kEager);

}  // namespace rematch
