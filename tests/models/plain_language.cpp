#include "tests/models/plain_language.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/polar.h>
#include <ATen/ops/rms_norm.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/view_as_complex.h>
#include <ATen/ops/view_as_real.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include <cmath>
#include <numbers>

#include "tests/models/model_checks.h"
#include "tests/support/catch.h"

namespace rematch {
namespace {

double llama_frequency(std::int64_t pair, std::int64_t head_dim) {
  const double frequency =
      std::pow(500'000.0, -2.0 * static_cast<double>(pair) / static_cast<double>(head_dim));
  const double wavelength = 2 * std::numbers::pi / frequency;
  if (wavelength > 8192) return frequency / 8;
  if (wavelength <= 2048) return frequency;
  const double kept = (8192 / wavelength - 1) / 3;
  return frequency * (kept + (1 - kept) / 8);
}

// Returns the rotary frequency of a pair under YaRN. Pairs that turn more than 32 times in 4096
// tokens keep their frequency. The frequency of pairs that turn less than once is divided by 40.
// Between these limits, the frequency is interpolated.
double yarn_frequency(std::int64_t pair, std::int64_t rope_dim) {
  const auto width = static_cast<double>(rope_dim);
  const auto place = [&](double turns) {
    return width * std::log(4096 / (turns * 2 * std::numbers::pi)) / (2 * std::log(10'000.0));
  };
  const double from = std::max(0.0, std::floor(place(32)));
  double to = std::min(width - 1, std::ceil(place(1)));
  if (from == to) to += 0.001;
  const double old = std::min(1.0, std::max(0.0, (static_cast<double>(pair) - from) / (to - from)));
  const double frequency = std::pow(10'000.0, -2.0 * static_cast<double>(pair) / width);
  return frequency * (1 - old) + frequency / 40 * old;
}

template <typename Frequency>
at::Tensor turn(const at::Tensor& x, const Frequency& frequency) {
  const std::int64_t num_pairs = x.size(3) / 2;
  std::vector<double> angles;
  for (std::int64_t token = 0; token < x.size(1); ++token) {
    for (std::int64_t pair = 0; pair < num_pairs; ++pair) {
      angles.push_back(static_cast<double>(token) * frequency(pair, x.size(3)));
    }
  }
  const at::Tensor angle = at::from_blob(angles.data(), {x.size(1), 1, num_pairs},
                                         at::TensorOptions().dtype(at::kDouble))
                               .clone();
  const at::Tensor pairs = x.reshape({x.size(0), x.size(1), x.size(2), num_pairs, 2});
  const at::Tensor turned = at::view_as_complex(pairs) * at::polar(at::ones_like(angle), angle);
  return at::view_as_real(turned).reshape(x.sizes());
}

// q, k and v are [B, S, H, E]. Returns [B * S, H * E].
at::Tensor causal_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                            double scale) {
  const std::int64_t tokens = q.size(1);
  const at::Tensor mask =
      at::full({tokens, tokens}, -INFINITY, q.options().requires_grad(false)).triu(1);
  const at::Tensor scores = q.transpose(1, 2).matmul(k.permute({0, 2, 3, 1})) * scale + mask;
  const at::Tensor out = scores.softmax(-1).matmul(v.transpose(1, 2)).transpose(1, 2);
  return out.reshape({q.size(0) * tokens, v.size(2) * v.size(3)});
}

class PlainLanguage {
 public:
  PlainLanguage(const ModelSpec& spec, const std::map<std::string, at::Tensor>& parameters)
      : spec_(spec), parameters_(parameters) {}

  at::Tensor loss(const Batch& batch) const {
    at::Tensor x = get("embed.weight").index_select(0, batch.tensors[0]);
    for (std::int64_t layer = 0; layer < spec_.at("layers"); ++layer) {
      const std::string name = "blocks." + std::to_string(layer) + ".";
      const at::Tensor normed = norm(x, name + "attention_norm.weight");
      x = x + (spec_.family == ModelFamily::kDeepseek
                   ? attend_latent(normed, name + "attention.")
                   : attend_grouped(normed, name + "attention."));
      const at::Tensor n = norm(x, name + "ffn_norm.weight");
      x = x + (parameters_.contains(name + "moe.router.gate.weight") ? mixture(n, name + "moe.")
                                                                     : swiglu(n, name + "ffn."));
    }
    const bool tied = spec_.option("tied") == 1;
    const at::Tensor& head = get(tied ? "embed.weight" : "head.output.weight");
    return at::cross_entropy_loss(norm(x, "head.norm.weight").mm(head.t()), batch.tensors[1]);
  }

 private:
  const at::Tensor& get(const std::string& name) const { return parameters_.at(name); }

  at::Tensor norm(const at::Tensor& x, const std::string& weight) const {
    return at::rms_norm(x, {x.size(-1)}, get(weight), 1e-5);
  }

  at::Tensor linear(const at::Tensor& x, const std::string& name) const {
    at::Tensor weight = get(name + ".weight");
    if (parameters_.contains(name + ".adapter.up")) {
      weight = weight + 2 * get(name + ".adapter.up").mm(get(name + ".adapter.down"));
    }
    return x.mm(weight.t());
  }

  at::Tensor swiglu(const at::Tensor& x, const std::string& name) const {
    return linear(at::silu(linear(x, name + "w1")) * linear(x, name + "w3"), name + "w2");
  }

  at::Tensor attend_grouped(const at::Tensor& x, const std::string& name) const {
    const std::int64_t heads = spec_.at("heads"), head_dim = spec_.at("dim") / heads;
    const std::int64_t repeats = heads / spec_.at("kv_heads");
    const auto heads_of = [&](const char* weight) {
      return linear(x, name + weight).view({spec_.at("batch"), spec_.at("tokens"), -1, head_dim});
    };
    const at::Tensor q = turn(heads_of("wq"), llama_frequency);
    const at::Tensor k = turn(heads_of("wk"), llama_frequency).repeat_interleave(repeats, 2);
    const at::Tensor v = heads_of("wv").repeat_interleave(repeats, 2);
    const double scale = 1 / std::sqrt(static_cast<double>(head_dim));
    return linear(causal_attention(q, k, v, scale), name + "wo");
  }

  at::Tensor attend_latent(const at::Tensor& x, const std::string& name) const {
    const std::int64_t batch = spec_.at("batch"), tokens = spec_.at("tokens"),
                       heads = spec_.at("heads"), latent = spec_.at("latent_dim"),
                       plain = spec_.at("nope_dim"), turned = spec_.at("rope_dim"),
                       value = spec_.at("value_dim");
    const at::Tensor queries = linear(x, name + "wq").view({batch, tokens, heads, plain + turned});
    const at::Tensor q = at::cat(
        {queries.narrow(3, 0, plain), turn(queries.narrow(3, plain, turned), yarn_frequency)}, 3);
    const at::Tensor down = linear(x, name + "wkv_a");
    const at::Tensor shared =
        turn(down.narrow(1, latent, turned).reshape({batch, tokens, 1, turned}), yarn_frequency);
    const at::Tensor up =
        linear(norm(down.narrow(1, 0, latent), name + "kv_norm.weight"), name + "wkv_b")
            .view({batch, tokens, heads, plain + value});
    const at::Tensor k = at::cat({up.narrow(3, 0, plain), shared.repeat({1, 1, heads, 1})}, 3);
    const double stretch = 0.1 * 0.7 * std::log(40.0) + 1;
    const double scale = stretch * stretch / std::sqrt(static_cast<double>(plain + turned));
    return linear(causal_attention(q, k, up.narrow(3, plain, value), scale), name + "wo");
  }

  at::Tensor mixture(const at::Tensor& x, const std::string& name) const {
    // MoE models scale the experts' inputs by sigmoid scores; other families scale the outputs by
    // softmax scores
    const bool before_experts = spec_.family == ModelFamily::kMoe;
    const at::Tensor logits = x.mm(get(name + "router.gate.weight").t());
    const at::Tensor scores = before_experts ? logits.sigmoid() : logits.softmax(-1);
    const at::Tensor least =
        std::get<0>(scores.topk(spec_.at("top_k"))).amin({-1}, /*keepdim=*/true);
    const at::Tensor chosen = at::where(scores.ge(least), scores, at::zeros_like(scores));
    at::Tensor sum = swiglu(x, name + "shared_experts.");
    for (std::int64_t expert = 0; expert < spec_.at("experts"); ++expert) {
      const auto weight = [&](const char* which) {
        return get(name + "experts." + which).select(0, expert).t();
      };
      const at::Tensor score = chosen.narrow(1, expert, 1);
      const at::Tensor in = before_experts ? x * score : x;
      const at::Tensor out = (at::silu(in.mm(weight("w1"))) * in.mm(weight("w3"))).mm(weight("w2"));
      sum = sum + (before_experts ? out : out * score);
    }
    return sum;
  }

  const ModelSpec& spec_;
  const std::map<std::string, at::Tensor>& parameters_;
};

}  // namespace

at::Tensor plain_language_loss(const ModelSpec& spec,
                               const std::map<std::string, at::Tensor>& parameters,
                               const Batch& batch) {
  return PlainLanguage(spec, parameters).loss(batch);
}

void check_against_plain_language(const ModelSpec& spec) {
  const auto model = make_model(spec, at::kCPU);
  const Batch batch = make_data(spec, "", 1, at::kCPU)->batch(0);
  const auto parameters = parameters_in_double(*model);
  check_against_reference(*model, batch, plain_language_loss(spec, parameters, batch), parameters);
}

}  // namespace rematch
