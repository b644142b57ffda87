// Shapes: T all tokens of the batch, B sequences, S tokens a sequence, D dim, H heads, L
// latent_dim, N nope_dim, P rope_dim, V value_dim. After torchtitan's models/deepseek_v3.
#include "models/deepseek/latent_attention.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/split_with_sizes.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "kernels/attention/attention.h"
#include "models/language/language_model.h"
#include "models/layers/dropout.h"
#include "models/layers/norm.h"
#include "models/scope/scope.h"

namespace rematch {
namespace {

constexpr double kTheta = 1e4;

// YaRN (Peng et al. 2023) with DeepSeek-V3 16B's constants.
constexpr double kFactor = 40.0;
constexpr double kOldContext = 4096.0;
constexpr double kFastTurns = 32.0;
constexpr double kSlowTurns = 1.0;
constexpr double kScoreSlope = 0.1 * 0.70;  // 0.70: its mscale

// The pair, not rounded, that turns `num_turns` times over the old context.
double pair_of_turns(double num_turns, double rope_dim) {
  return rope_dim * std::log(kOldContext / (num_turns * 2.0 * std::numbers::pi)) /
         (2.0 * std::log(kTheta));
}

// Pairs that turn fast keep their frequency, slow ones are stretched, those between are mixed.
std::vector<double> yarn_frequencies(std::int64_t rope_dim) {
  const auto width = static_cast<double>(rope_dim);
  const double low = std::max(std::floor(pair_of_turns(kFastTurns, width)), 0.0);
  double high = std::min(std::ceil(pair_of_turns(kSlowTurns, width)), width - 1.0);
  if (low == high) high += 0.001;
  std::vector<double> frequencies = rotary_frequencies(rope_dim, kTheta);
  double pair = 0.0;
  for (double& frequency : frequencies) {
    const double stretched = std::clamp((pair - low) / (high - low), 0.0, 1.0);
    frequency = frequency / kFactor * stretched + frequency * (1.0 - stretched);
    pair += 1.0;
  }
  return frequencies;
}

double score_scale(double query_dim) {
  const double stretch = kScoreSlope * std::log(kFactor) + 1.0;
  return stretch * stretch / std::sqrt(query_dim);
}

}  // namespace

RotaryTable make_yarn_table(std::int64_t num_tokens, std::int64_t rope_dim, at::Device device) {
  RotaryAxis axis{{}, yarn_frequencies(rope_dim)};
  for (std::int64_t token = 0; token < num_tokens; ++token) axis.positions.push_back(token);
  return make_rotary_table({axis}, device);
}

LatentAttention::LatentAttention(Parameters& parameters, const std::string& name,
                                 const ModelSpec& spec)
    : batch_(spec.at("batch")),
      tokens_(spec.at("tokens")),
      heads_(spec.at("heads")),
      latent_dim_(spec.at("latent_dim")),
      nope_dim_(spec.at("nope_dim")),
      rope_dim_(spec.at("rope_dim")),
      value_dim_(spec.at("value_dim")),
      dropout_ratio_(dropout_ratio(spec)),
      ops_(ops_of(spec)) {
  const std::int64_t dim = spec.at("dim");
  wq_ = make_linear(parameters, name + ".wq", dim, heads_ * (nope_dim_ + rope_dim_), Bias::kNo);
  wkv_a_ = make_linear(parameters, name + ".wkv_a", dim, latent_dim_ + rope_dim_, Bias::kNo);
  kv_norm_ = parameters.add(name + ".kv_norm.weight", {latent_dim_}, near_one());
  wkv_b_ = make_linear(parameters, name + ".wkv_b", latent_dim_, heads_ * (nope_dim_ + value_dim_),
                       Bias::kNo);
  wo_ = make_linear(parameters, name + ".wo", heads_ * value_dim_, dim, Bias::kNo);
}

at::Tensor LatentAttention::forward(const at::Tensor& x_TD, const RotaryTable& table) const {
  const Scope scope("attention");
  Heads heads;
  heads.q = make_queries(x_TD, table);
  make_keys_and_values(x_TD, table, heads);
  at::Tensor out = attend(std::move(heads));
  const Scope output("output");
  out = out.transpose(1, 2);
  out = out.narrow(3, 0, value_dim_);
  out = out.reshape({x_TD.size(0), heads_ * value_dim_});
  return dropout(apply_linear(wo_, out), dropout_ratio_);
}

at::Tensor LatentAttention::make_queries(const at::Tensor& x_TD, const RotaryTable& table) const {
  const Scope scope("query");
  at::Tensor q = apply_linear(wq_, x_TD);
  q = q.view({batch_, tokens_, heads_, nope_dim_ + rope_dim_});
  std::vector<at::Tensor> parts = at::split_with_sizes(q, {nope_dim_, rope_dim_}, -1);
  parts[1] = apply_rotary(parts[1], table, ops_);
  return at::cat(parts, -1);
}

void LatentAttention::make_keys_and_values(const at::Tensor& x_TD, const RotaryTable& table,
                                           Heads& heads) const {
  std::vector<at::Tensor> latent;  // the latent, the rotated key part
  {
    const Scope scope("kv_down");
    const at::Tensor down = apply_linear(wkv_a_, x_TD);
    latent = at::split_with_sizes(down, {latent_dim_, rope_dim_}, -1);
    latent[1] = latent[1].view({batch_, tokens_, 1, rope_dim_});
    latent[1] = apply_rotary(latent[1], table, ops_);
  }
  latent[0] = language_norm("kv_norm", latent[0], kv_norm_, ops_);
  const Scope scope("kv_up");
  at::Tensor up = apply_linear(wkv_b_, latent[0]);
  up = up.view({batch_, tokens_, heads_, nope_dim_ + value_dim_});
  std::vector<at::Tensor> parts = at::split_with_sizes(up, {nope_dim_, value_dim_}, -1);
  const at::Tensor shared = latent[1].expand({-1, -1, heads_, -1});
  heads.k = at::cat({parts[0], shared}, -1);
  heads.v = at::constant_pad_nd(parts[1], {0, nope_dim_ + rope_dim_ - value_dim_});
}

at::Tensor LatentAttention::attend(Heads heads) const {
  const Scope scope("core");
  heads.q = heads.q.transpose(1, 2);
  heads.k = heads.k.transpose(1, 2);
  heads.v = heads.v.transpose(1, 2);
  const double scale = score_scale(static_cast<double>(nope_dim_ + rope_dim_));
  return std::get<0>(attention(heads.q, heads.k, heads.v, /*causal=*/true, scale));
}

}  // namespace rematch
