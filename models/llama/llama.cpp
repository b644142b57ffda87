// Shapes: T all tokens of the batch, B sequences, S tokens a sequence, D dim, H heads, G key and
// value heads, E head dim, F ffn, V vocab. After torchtitan's models/llama3.
#include "models/llama/llama.h"

#include <ATen/ops/add.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/silu.h>

#include <cmath>
#include <numbers>

#include "kernels/attention/attention.h"
#include "models/layers/linear.h"
#include "models/layers/norm.h"
#include "models/layers/parameters.h"
#include "models/layers/rotary.h"
#include "models/scope/scope.h"

namespace rematch {
namespace {

constexpr double kEps = 1e-5;
constexpr double kTheta = 5e5;

// Llama 3.1's stretching of long wavelengths: (factor, low and high frequency factor, old context).
constexpr double kScaleFactor = 8.0;
constexpr double kLowFrequencyFactor = 1.0;
constexpr double kHighFrequencyFactor = 4.0;
constexpr double kOldContext = 8192.0;

double scale_frequency(double frequency) {
  const double wavelength = 2.0 * std::numbers::pi / frequency;
  if (wavelength < kOldContext / kHighFrequencyFactor) return frequency;
  if (wavelength > kOldContext / kLowFrequencyFactor) return frequency / kScaleFactor;
  const double smooth = (kOldContext / wavelength - kLowFrequencyFactor) /
                        (kHighFrequencyFactor - kLowFrequencyFactor);
  return (1.0 - smooth) * frequency / kScaleFactor + smooth * frequency;
}

RotaryTable make_table(std::int64_t num_tokens, std::int64_t head_dim, at::Device device) {
  RotaryAxis axis;
  for (std::int64_t token = 0; token < num_tokens; ++token) axis.positions.push_back(token);
  for (const double frequency : rotary_frequencies(head_dim, kTheta)) {
    axis.frequencies.push_back(scale_frequency(frequency));
  }
  return make_rotary_table({axis}, device);
}

struct Shape {
  std::int64_t batch, tokens, heads, kv_heads, head_dim;
};

class Block {
 public:
  Block(Parameters& parameters, const std::string& name, const ModelSpec& spec, const Shape& shape)
      : shape_(shape) {
    const std::int64_t dim = spec.at("dim");
    const std::int64_t ffn = spec.at("ffn");
    const std::int64_t kv_dim = shape.kv_heads * shape.head_dim;
    attention_norm_ = parameters.add(name + ".attention_norm.weight", {dim}, near_one());
    wq_ = make_linear(parameters, name + ".attention.wq", dim, dim, Bias::kNo);
    wk_ = make_linear(parameters, name + ".attention.wk", dim, kv_dim, Bias::kNo);
    wv_ = make_linear(parameters, name + ".attention.wv", dim, kv_dim, Bias::kNo);
    wo_ = make_linear(parameters, name + ".attention.wo", dim, dim, Bias::kNo);
    ffn_norm_ = parameters.add(name + ".ffn_norm.weight", {dim}, near_one());
    w1_ = make_linear(parameters, name + ".ffn.w1", dim, ffn, Bias::kNo);
    w3_ = make_linear(parameters, name + ".ffn.w3", dim, ffn, Bias::kNo);
    w2_ = make_linear(parameters, name + ".ffn.w2", ffn, dim, Bias::kNo);
  }

  at::Tensor forward(at::Tensor x_TD, const RotaryTable& table) const {
    at::Tensor branch_TD = norm("attention_norm", x_TD, attention_norm_);
    branch_TD = attend(branch_TD, table);
    x_TD = at::add(x_TD, branch_TD);
    branch_TD = norm("ffn_norm", x_TD, ffn_norm_);
    branch_TD = feed_forward(branch_TD);
    return at::add(x_TD, branch_TD);
  }

 private:
  static at::Tensor norm(const char* scope_name, const at::Tensor& x_TD, const at::Tensor& weight) {
    const Scope scope(scope_name);
    return rms_norm(x_TD, weight, kEps);
  }

  at::Tensor attend(const at::Tensor& x_TD, const RotaryTable& table) const {
    const Scope scope("attention");
    at::Tensor q, k, v;
    {
      const Scope qkv("qkv");
      q = apply_linear(wq_, x_TD);
      k = apply_linear(wk_, x_TD);
      v = apply_linear(wv_, x_TD);
    }
    {
      const Scope rotary("rotary");
      q = q.view({shape_.batch, shape_.tokens, shape_.heads, shape_.head_dim});
      k = k.view({shape_.batch, shape_.tokens, shape_.kv_heads, shape_.head_dim});
      v = v.view({shape_.batch, shape_.tokens, shape_.kv_heads, shape_.head_dim});
      q = apply_rotary(q, table);
      k = apply_rotary(k, table);
    }
    at::Tensor out;
    {
      const Scope core("core");
      q = q.transpose(1, 2);
      k = k.transpose(1, 2);
      v = v.transpose(1, 2);
      out = std::get<0>(attention(q, k, v, /*causal=*/true));
    }
    const Scope output("output");
    out = out.transpose(1, 2);
    out = out.reshape({x_TD.size(0), shape_.heads * shape_.head_dim});
    return apply_linear(wo_, out);
  }

  at::Tensor feed_forward(const at::Tensor& x_TD) const {
    const Scope scope("ffn");
    at::Tensor hidden_TF = apply_linear(w1_, x_TD);
    hidden_TF = at::silu(hidden_TF);
    const at::Tensor up_TF = apply_linear(w3_, x_TD);
    hidden_TF = at::mul(hidden_TF, up_TF);
    return apply_linear(w2_, hidden_TF);
  }

  Shape shape_;
  at::Tensor attention_norm_, ffn_norm_;
  Linear wq_, wk_, wv_, wo_, w1_, w2_, w3_;
};

class Llama final : public Model {
 public:
  Llama(const ModelSpec& spec, at::Device device) : parameters_(dtype_of(spec), device) {
    const std::int64_t dim = spec.at("dim");
    const Shape shape{spec.at("batch"), spec.at("tokens"), spec.at("heads"), spec.at("kv_heads"),
                      dim / spec.at("heads")};
    table_ = make_table(shape.tokens, shape.head_dim, device);
    embedding_ = parameters_.add("embed.weight", {spec.at("vocab"), dim}, uniform_by_fan_in(dim));
    for (std::int64_t layer = 0; layer < spec.at("layers"); ++layer) {
      blocks_.emplace_back(parameters_, "blocks." + std::to_string(layer), spec, shape);
    }
    head_norm_ = parameters_.add("head.norm.weight", {dim}, near_one());
    if (spec.at("tied") == 1) {
      head_.weight = embedding_;
    } else {
      head_ = make_linear(parameters_, "head.output", dim, spec.at("vocab"), Bias::kNo);
    }
  }

  at::Tensor loss(const Batch& batch) override {
    at::Tensor x = embed(batch.tensors.at(0));
    for (std::size_t layer = 0; layer < blocks_.size(); ++layer) {
      const Scope scope("blocks", static_cast<int>(layer));
      x = run_block(
          [this, layer](at::Tensor input) {
            return blocks_[layer].forward(std::move(input), table_);
          },
          std::move(x));
    }
    x = logits(std::move(x));
    const Scope scope("loss");
    x = x.to(at::kFloat);
    return at::cross_entropy_loss(x, batch.tensors.at(1));
  }

  const std::vector<NamedTensor>& parameters() const override { return parameters_.list(); }

 private:
  at::Tensor embed(const at::Tensor& tokens_T) const {
    const Scope scope("embed");
    return at::embedding(embedding_, tokens_T);
  }

  at::Tensor logits(at::Tensor x_TD) const {
    const Scope scope("head");
    x_TD = rms_norm(x_TD, head_norm_, kEps);
    return apply_linear(head_, x_TD);
  }

  Parameters parameters_;
  RotaryTable table_;
  at::Tensor embedding_, head_norm_;
  std::vector<Block> blocks_;
  Linear head_;
};

}  // namespace

std::unique_ptr<Model> make_llama(const ModelSpec& spec, at::Device device) {
  return std::make_unique<Llama>(spec, device);
}

}  // namespace rematch
