// The 16B model of DeepSeek-V3. Its attention has a latent for keys and values, but none for
// queries. The first few blocks have a feed-forward. The other blocks have a mixture of experts,
// whose softmax scores multiply the experts' outputs. Source: torchtitan's models/deepseek_v3.
// Shapes: T all tokens of the batch, B sequences, S tokens per sequence, D dim, H heads, L
// latent_dim, N nope_dim, P rope_dim, V value_dim.
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/split_with_sizes.h>

#include <cmath>
#include <utility>

#include "kernels/attention/attention.h"
#include "models/language/feed_forward.h"
#include "models/language/language_model.h"
#include "models/scope/names.h"

namespace rematch::deepseek {
namespace {

// YaRN scales the attention scores in addition to stretching the rotary table.
constexpr double kScoreSlope = 0.1 * 0.70;  // 0.70 is the constant mscale of YaRN

double score_scale(double query_dim) {
  const double stretch = kScoreSlope * std::log(kYarnFactor) + 1.0;
  return stretch * stretch / std::sqrt(query_dim);
}

// DeepSeek's multi-head latent attention. Keys and values are projected from one narrow latent. The
// rotated part of the keys is the same for all heads. Value heads are narrower than query heads, so
// they are padded for the attention op.
class LatentAttention {
 public:
  // Creates the parameters `name`.wq, .wkv_a, .kv_norm, .wkv_b and .wo.
  LatentAttention(Parameters& parameters, const std::string& name, const ModelSpec& spec);

  // Opens scope "attention". x_TD has batch * tokens rows: all tokens of the first sequence, then
  // all tokens of the next.
  at::Tensor forward(const at::Tensor& x_TD, const RotaryTable& table) const;

 private:
  struct Heads {
    at::Tensor q, k, v;  // each is [B, S, H, N + P]; v is padded to this width
  };

  at::Tensor make_queries(const at::Tensor& x_TD, const RotaryTable& table) const;
  void make_keys_and_values(const at::Tensor& x_TD, const RotaryTable& table, Heads& heads) const;
  // Returns [B, H, S, N + P]; under ulysses [B, S, H, N + P].
  at::Tensor attend(Heads heads) const;

  std::int64_t batch_, tokens_, heads_;  // heads_ and tokens_ count this rank's share
  std::int64_t latent_dim_, nope_dim_, rope_dim_, value_dim_;
  double dropout_ratio_;
  Ops ops_;
  TensorParallel parallel_;
  RankAxis ulysses_;
  Linear wq_, wkv_a_, wkv_b_, wo_;
  Weight kv_norm_;
};

LatentAttention::LatentAttention(Parameters& parameters, const std::string& name,
                                 const ModelSpec& spec)
    : batch_(spec.at("batch")),
      tokens_(spec.at("tokens") / rank_axis(spec, "ulysses").size),
      heads_(spec.at("heads") / rank_axis(spec, "tp").size),
      latent_dim_(spec.at("latent_dim")),
      nope_dim_(spec.at("nope_dim")),
      rope_dim_(spec.at("rope_dim")),
      value_dim_(spec.at("value_dim")),
      dropout_ratio_(dropout_ratio(spec)),
      ops_(ops_of(spec)),
      parallel_(parameters.tensor_parallel()),
      ulysses_(rank_axis(spec, "ulysses")) {
  const std::int64_t dim = spec.at("dim");
  const std::int64_t heads = spec.at("heads");
  wq_ = make_linear(parameters, name + ".wq", dim, heads * (nope_dim_ + rope_dim_), Bias::kNo,
                    LinearSplit::kByOutputs);
  // wkv_a is not split, because every rank needs the whole latent. Each rank has a gradient of the
  // latent only from its own heads, so the gradients must be summed.
  wkv_a_ = make_linear(parameters, name + ".wkv_a", dim, latent_dim_ + rope_dim_, Bias::kNo,
                       LinearSplit::kShared);
  kv_norm_ = parameters.add(name + ".kv_norm.weight", {latent_dim_}, near_one(),
                            {.is_partial_over_tp = true});
  wkv_b_ = make_linear(parameters, name + ".wkv_b", latent_dim_, heads * (nope_dim_ + value_dim_),
                       Bias::kNo, LinearSplit::kByOutputs);
  wo_ = make_linear(parameters, name + ".wo", heads * value_dim_, dim, Bias::kNo,
                    LinearSplit::kByInputs);
}

at::Tensor LatentAttention::forward(const at::Tensor& x_TD, const RotaryTable& table) const {
  const Scope scope(scope_names::kAttention);
  Heads heads;
  {
    const at::Tensor input_TD = enter(x_TD, parallel_);
    heads.q = make_queries(input_TD, table);
    make_keys_and_values(input_TD, table, heads);
  }
  at::Tensor out = attend(std::move(heads));
  const Scope output(scope_names::kOutput);
  if (!ulysses_.is_split()) out = out.transpose(1, 2);
  out = out.narrow(3, 0, value_dim_);
  out = out.reshape({batch_ * tokens_, heads_ * value_dim_});
  at::Tensor result = apply_linear(wo_, out);
  result = leave(std::move(result), parallel_);
  return dropout(std::move(result), dropout_ratio_);
}

at::Tensor LatentAttention::make_queries(const at::Tensor& x_TD, const RotaryTable& table) const {
  const Scope scope(scope_names::kQuery);
  at::Tensor q = apply_linear(wq_, x_TD);
  q = q.view({batch_, tokens_, heads_, nope_dim_ + rope_dim_});
  std::vector<at::Tensor> parts = at::split_with_sizes(q, {nope_dim_, rope_dim_}, -1);
  parts[1] = apply_rotary(parts[1], table, ops_);
  return at::cat(parts, -1);
}

void LatentAttention::make_keys_and_values(const at::Tensor& x_TD, const RotaryTable& table,
                                           Heads& heads) const {
  std::vector<at::Tensor> latent;  // two tensors: the latent, and the rotated part of the keys
  {
    const Scope scope(scope_names::kKvDown);
    const at::Tensor down = apply_linear(wkv_a_, x_TD);
    latent = at::split_with_sizes(down, {latent_dim_, rope_dim_}, -1);
    latent[1] = latent[1].view({batch_, tokens_, 1, rope_dim_});
    latent[1] = apply_rotary(latent[1], table, ops_);
  }
  latent[0] = language_norm(scope_names::kKvNorm, latent[0], kv_norm_, ops_);
  const Scope scope(scope_names::kKvUp);
  at::Tensor up = apply_linear(wkv_b_, latent[0]);
  up = up.view({batch_, tokens_, heads_, nope_dim_ + value_dim_});
  std::vector<at::Tensor> parts = at::split_with_sizes(up, {nope_dim_, value_dim_}, -1);
  const at::Tensor shared = latent[1].expand({-1, -1, heads_, -1});
  heads.k = at::cat({parts[0], shared}, -1);
  heads.v = at::constant_pad_nd(parts[1], {0, nope_dim_ + rope_dim_ - value_dim_});
}

at::Tensor LatentAttention::attend(Heads heads) const {
  const Scope scope(scope_names::kCore);
  heads.q = tokens_to_heads(std::move(heads.q), ulysses_);
  heads.k = tokens_to_heads(std::move(heads.k), ulysses_);
  heads.v = tokens_to_heads(std::move(heads.v), ulysses_);
  heads.q = heads.q.transpose(1, 2);
  heads.k = heads.k.transpose(1, 2);
  heads.v = heads.v.transpose(1, 2);
  const double scale = score_scale(static_cast<double>(nope_dim_ + rope_dim_));
  at::Tensor out = std::get<0>(attention(heads.q, heads.k, heads.v, /*causal=*/true, scale));
  if (!ulysses_.is_split()) return out;
  return heads_to_tokens(out.transpose(1, 2), ulysses_);
}

struct Parts {
  using Attention = LatentAttention;
  using Ffn = DenseOrMoe;

  static Ffn make_ffn(Parameters& parameters, const std::string& name, const ModelSpec& spec,
                      std::int64_t layer) {
    if (layer < spec.at("dense_layers")) return DenseOrMoe::dense(parameters, name, spec);
    return DenseOrMoe::moe(parameters, name, spec, RouterScore::kSoftmax,
                           ScoreApplied::kAfterExperts);
  }

  static InitialValues embedding_values(std::int64_t /*dim*/) { return unit(); }

  static RotaryTable make_table(const ModelSpec& spec, at::Device device) {
    return make_yarn_table(spec.at("tokens"), spec.at("rope_dim"), device);
  }
};

}  // namespace
}  // namespace rematch::deepseek

namespace rematch {

std::unique_ptr<Model> make_deepseek(const ModelSpec& spec, at::Device device) {
  return std::make_unique<LanguageModel<deepseek::Parts>>(spec, device);
}

}  // namespace rematch
