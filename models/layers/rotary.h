// Rotary position embedding over interleaved pairs (2i, 2i+1), as in Llama 3 and Wan.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "models/layers/ops.h"
#include "models/preset/parallel.h"

namespace rematch {

// Cosines and sines, each a constant float32 tensor [tokens, 1, head_dim / 2]. Angles, cosines and
// sines are computed in double.
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

// Concatenates the pairs of all axes, in the order of the axes. All axes must have the same number
// of positions. On meta the table has no data.
RotaryTable make_rotary_table(const std::vector<RotaryAxis>& axes, at::Device device);

// Makes a table from a function: angle(token, pair) is the angle by which the pair is rotated at
// the token.
RotaryTable make_rotary_table(
    std::int64_t num_tokens, std::int64_t num_pairs,
    const std::function<double(std::int64_t token, std::int64_t pair)>& angle, at::Device device);

// Returns the table's rows for this rank's tokens: all rows if `axis` does not split the tokens.
RotaryTable rows_of_rank(RotaryTable table, const RankAxis& axis);

// Returns Llama 3.1's table: theta is 5e5, and long wavelengths are stretched.
RotaryTable make_llama_table(std::int64_t num_tokens, std::int64_t head_dim, at::Device device);

// Returns the table for the rotated part of a head in the 16B model of DeepSeek-V3. Theta is 1e4.
// YaRN (Peng et al. 2023) stretches the table from a context of 4096.
inline constexpr double kYarnFactor = 40.0;
RotaryTable make_yarn_table(std::int64_t num_tokens, std::int64_t rope_dim, at::Device device);

// Rotates x_BSHD in float32 and returns x's dtype. The ops are `view unbind mul mul sub mul mul add
// stack view`. Each head of x must be contiguous. With fused ops, `rematch::rope` replaces all
// these ops.
at::Tensor apply_rotary(const at::Tensor& x_BSHD, const RotaryTable& table, Ops ops = Ops::kEager);

}  // namespace rematch
