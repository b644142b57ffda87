// Rotary position embedding over interleaved pairs (2i, 2i+1), as Llama 3 and Wan use it.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "models/layers/ops.h"
#include "models/preset/parallel.h"

namespace rematch {

// Constants: [tokens, 1, head_dim / 2] each, float32. Angles, cosines and sines are computed in
// double.
struct RotaryTable {
  at::Tensor cosine;
  at::Tensor sine;
};

// One position axis: token t stands at positions[t] and turns pair i by positions[t] *
// frequencies[i].
struct RotaryAxis {
  std::vector<std::int64_t> positions;
  std::vector<double> frequencies;
};

// theta^(-2i / head_dim) for each pair i.
std::vector<double> rotary_frequencies(std::int64_t head_dim, double theta);

// The axes' pairs one after the other; all axes have the same number of positions. On meta: no
// data.
RotaryTable make_rotary_table(const std::vector<RotaryAxis>& axes, at::Device device);

// Any other: angle(token, pair) turns that pair.
RotaryTable make_rotary_table(
    std::int64_t num_tokens, std::int64_t num_pairs,
    const std::function<double(std::int64_t token, std::int64_t pair)>& angle, at::Device device);

// The table's part for the tokens of spec.rank where tokens are split over `axis`.
RotaryTable rows_of_rank(RotaryTable table, const RankAxis& axis);

// Llama 3.1's table: theta 5e5, long wavelengths stretched.
RotaryTable make_llama_table(std::int64_t num_tokens, std::int64_t head_dim, at::Device device);

// DeepSeek-V3 16B's table for the rotated part of a head: theta 1e4, stretched by YaRN (Peng et al.
// 2023) from a context of 4096.
inline constexpr double kYarnFactor = 40.0;
RotaryTable make_yarn_table(std::int64_t num_tokens, std::int64_t rope_dim, at::Device device);

// Turns x_BSHD, contiguous in each head, in float32; gives x's dtype: `view unbind mul mul sub mul
// mul add stack view`. Fused: `rematch::rope`.
at::Tensor apply_rotary(const at::Tensor& x_BSHD, const RotaryTable& table, Ops ops = Ops::kEager);

}  // namespace rematch
