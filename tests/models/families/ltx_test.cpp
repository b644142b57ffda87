#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/rms_norm.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/stack.h>

#include <cmath>
#include <numbers>

#include "tests/models/model_checks.h"
#include "tests/models/op_stream.h"
#include "tests/support/catch.h"

using namespace rematch;

namespace {

const std::map<std::string, std::int64_t> kReducedLtx = {
    {"layers", 2}, {"dim", 64},  {"heads", 4},       {"ffn", 48},    {"frames", 3},
    {"height", 2}, {"width", 4}, {"text_tokens", 7}, {"channels", 3}};

at::Tensor tensor_of(std::vector<double>& values, at::IntArrayRef sizes) {
  return at::from_blob(values.data(), sizes, at::TensorOptions().dtype(at::kDouble)).clone();
}

// LTX-Video in double, written as in diffusers. Each cosine and sine is repeated for both elements
// of a pair, and attention is softmax(q k^T + mask) v.
class LtxReference {
 public:
  LtxReference(const ModelSpec& spec, std::map<std::string, at::Tensor> parameters)
      : spec_(spec), parameters_(std::move(parameters)) {}

  at::Tensor loss(const Batch& batch) const {
    const at::Tensor latents = batch.tensors[0].to(at::kDouble);
    const at::Tensor noise = batch.tensors[1].to(at::kDouble);
    const at::Tensor time = batch.tensors[2].to(at::kDouble);
    const at::Tensor mixed_time = time.view({-1, 1, 1, 1, 1});
    const at::Tensor mixed = (1 - mixed_time) * latents + mixed_time * noise;
    at::Tensor x = linear("embed.patch", mixed.flatten(2).transpose(1, 2));
    const at::Tensor temb =
        linear("embed.time.out", at::silu(linear("embed.time.in", sinusoid(time))));
    const at::Tensor modulation =
        linear("embed.time.projection", at::silu(temb)).view({-1, 6, spec_.at("dim")});
    const at::Tensor text =
        linear("embed.text.out",
               at::gelu(linear("embed.text.in", batch.tensors[3].to(at::kDouble)), "tanh"));
    const at::Tensor mask = ((1 - batch.tensors[4].to(at::kDouble)) * -10'000).view({-1, 1, 1, 7});
    for (std::int64_t layer = 0; layer < spec_.at("layers"); ++layer) {
      x = block(x, text, mask, modulation, "blocks." + std::to_string(layer));
    }
    const at::Tensor table = get("head.modulation") + temb.unsqueeze(1);
    x = at::layer_norm(x, {x.size(-1)}, {}, {}, 1e-6);
    x = linear("head.output", x * (1 + table.narrow(1, 1, 1)) + table.narrow(1, 0, 1));
    return at::mse_loss(x.transpose(1, 2).reshape(latents.sizes()), noise - latents);
  }

  const std::map<std::string, at::Tensor>& parameters() const { return parameters_; }

 private:
  const at::Tensor& get(const std::string& name) const { return parameters_.at(name); }

  at::Tensor linear(const std::string& name, const at::Tensor& x) const {
    return at::linear(x, get(name + ".weight"), get(name + ".bias"));
  }

  at::Tensor sinusoid(const at::Tensor& time) const {
    const std::int64_t half = spec_.at("freq_dim") / 2;
    std::vector<double> frequencies;
    for (std::int64_t i = 0; i < half; ++i) {
      frequencies.push_back(
          std::exp(-std::log(10'000.0) * static_cast<double>(i) / static_cast<double>(half)));
    }
    const at::Tensor angle = time.view({-1, 1}) * 1000 * tensor_of(frequencies, {1, half});
    return at::cat({angle.cos(), angle.sin()}, 1);
  }

  // Returns [tokens, dim]. A row starts with two pairs of zeros for the 64 % 6 = 4 leftover
  // dimensions. Then each frequency has one angle per axis, in the order frame, row, column.
  at::Tensor angles() const {
    std::vector<double> angles;
    for (std::int64_t frame = 0; frame < spec_.at("frames"); ++frame) {
      for (std::int64_t row = 0; row < spec_.at("height"); ++row) {
        for (std::int64_t column = 0; column < spec_.at("width"); ++column) {
          const double places[] = {static_cast<double>(frame) * 8 / 25 / 20,
                                   static_cast<double>(row) * 32 / 2048,
                                   static_cast<double>(column) * 32 / 2048};
          angles.insert(angles.end(), 4, 0.0);
          for (int i = 0; i < 10; ++i) {
            for (const double place : places) {
              const double angle =
                  std::pow(10'000.0, i / 9.0) * std::numbers::pi / 2 * (place * 2 - 1);
              angles.insert(angles.end(), 2, angle);
            }
          }
        }
      }
    }
    return tensor_of(angles, {spec_.at("tokens"), 64});
  }

  at::Tensor turn(const at::Tensor& x) const {
    const at::Tensor pairs = x.unflatten(2, {-1, 2});
    const at::Tensor crossed = at::stack({-pairs.select(3, 1), pairs.select(3, 0)}, -1).flatten(2);
    return x * angles().cos() + crossed * angles().sin();
  }

  at::Tensor attend(const at::Tensor& x, const at::Tensor& context, const std::string& name,
                    const at::Tensor& mask) const {
    const std::int64_t dim = spec_.at("dim"), heads = spec_.at("heads");
    at::Tensor q =
        at::rms_norm(linear(name + ".query", x), {dim}, get(name + ".query_norm.weight"), 1e-5);
    at::Tensor k =
        at::rms_norm(linear(name + ".key", context), {dim}, get(name + ".key_norm.weight"), 1e-5);
    if (!mask.defined()) {
      q = turn(q);
      k = turn(k);
    }
    const auto split = [&](const at::Tensor& t) {
      return t.view({x.size(0), -1, heads, dim / heads}).transpose(1, 2);
    };
    at::Tensor scores =
        split(q).matmul(split(k).transpose(2, 3)) / std::sqrt(static_cast<double>(dim / heads));
    if (mask.defined()) scores = scores + mask;
    const at::Tensor out = scores.softmax(-1).matmul(split(linear(name + ".value", context)));
    return linear(name + ".output", out.transpose(1, 2).reshape(x.sizes()));
  }

  at::Tensor block(at::Tensor x, const at::Tensor& text, const at::Tensor& mask,
                   const at::Tensor& time, const std::string& name) const {
    const auto e = (get(name + ".modulation") + time).chunk(6, 1);
    const auto normed = [&] { return at::rms_norm(x, {x.size(-1)}, {}, 1e-6); };
    const at::Tensor n = normed() * (1 + e[1]) + e[0];
    x = x + attend(n, n, name + ".self_attention", {}) * e[2];
    x = x + attend(x, text, name + ".cross_attention", mask);
    const at::Tensor hidden = linear(name + ".ffn.up", normed() * (1 + e[4]) + e[3]);
    return x + linear(name + ".ffn.down", at::gelu(hidden, "tanh")) * e[5];
  }

  ModelSpec spec_;
  std::map<std::string, at::Tensor> parameters_;
};

}  // namespace

TEST_CASE("LTX's loss and gradients equal the results of plain code in double") {
  const ModelSpec spec = spec_of("ltx_small", kReducedLtx);
  const auto model = make_model(spec, at::kCPU);
  const Batch batch = make_data(spec, "", 1, at::kCPU)->batch(0);
  const LtxReference reference(spec, parameters_in_double(*model));
  check_against_reference(*model, batch, reference.loss(batch), reference.parameters());
}

TEST_CASE("an LTX block runs two attention ops, and the attention op over text has a mask") {
  const ModelSpec spec = spec_of("ltx_small", kReducedLtx);
  const auto model = make_model(spec, at::kCPU);
  OpStream stream;
  {
    const OpModeGuard guard(&stream);
    model->loss(make_data(spec, "", 1, at::kCPU)->batch(0));
  }
  std::map<std::string, int> counts;
  for (const std::string& name : stream.names()) ++counts[name];
  CHECK(counts["rematch::attention"] == 2);
  CHECK(counts["rematch::masked_attention"] == 2);
}

TEST_CASE("the content of masked text tokens has no influence") {
  const ModelSpec spec = spec_of("ltx_small", kReducedLtx);
  const auto model = make_model(spec, at::kCPU);
  Batch batch = make_data(spec, "", 1, at::kCPU)->batch(0);
  const float loss = model->loss(batch).item<float>();
  batch.tensors[3].narrow(1, 3, 4).mul_(-5);
  CHECK(model->loss(batch).item<float>() == loss);
  batch.tensors[3].narrow(1, 2, 1).mul_(-5);
  CHECK(model->loss(batch).item<float>() != loss);
}
