
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/conv3d.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/polar.h>
#include <ATen/ops/rms_norm.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/view_as_complex.h>
#include <ATen/ops/view_as_real.h>

#include <cmath>

#include "tests/models/model_checks.h"
#include "tests/support/catch.h"

using namespace rematch;

namespace {

// Wan 2.1 in double, written as in diffusers. A convolution computes the patches, rotation
// multiplies complex numbers, and attention is softmax(q k^T) v.
class WanReference {
 public:
  WanReference(const ModelSpec& spec, std::map<std::string, at::Tensor> parameters)
      : spec_(spec), parameters_(std::move(parameters)) {}

  at::Tensor loss(const Batch& batch) const {
    const at::Tensor latents = batch.tensors[0].to(at::kDouble);
    const at::Tensor noise = batch.tensors[1].to(at::kDouble);
    const at::Tensor time = batch.tensors[2].to(at::kDouble);
    const at::Tensor mixed_time = time.view({-1, 1, 1, 1, 1});
    at::Tensor x = patches((1 - mixed_time) * latents + mixed_time * noise);
    const at::Tensor temb =
        linear("embed.time.out", at::silu(linear("embed.time.in", sinusoid(time))));
    const at::Tensor modulation =
        linear("embed.time.projection", at::silu(temb)).view({-1, 6, spec_.at("dim")});
    const at::Tensor text =
        linear("embed.text.out",
               at::gelu(linear("embed.text.in", batch.tensors[3].to(at::kDouble)), "tanh"));
    for (std::int64_t layer = 0; layer < spec_.at("layers"); ++layer) {
      x = block(x, text, modulation, "blocks." + std::to_string(layer));
    }
    const at::Tensor table = get("head.modulation") + temb.unsqueeze(1);
    x = linear("head.output", plain_norm(x) * (1 + table.narrow(1, 1, 1)) + table.narrow(1, 0, 1));
    x = x.reshape({spec_.at("batch"), spec_.at("frames"), spec_.at("height"), spec_.at("width"), 1,
                   2, 2, spec_.at("channels")});
    x = x.permute({0, 7, 1, 4, 2, 5, 3, 6}).reshape(latents.sizes());
    return at::mse_loss(x, noise - latents);
  }

  const std::map<std::string, at::Tensor>& parameters() const { return parameters_; }

 private:
  const at::Tensor& get(const std::string& name) const { return parameters_.at(name); }

  at::Tensor linear(const std::string& name, const at::Tensor& x) const {
    return at::linear(x, get(name + ".weight"), get(name + ".bias"));
  }

  static at::Tensor plain_norm(const at::Tensor& x) {
    return at::layer_norm(x, {x.size(-1)}, {}, {}, 1e-6);
  }

  at::Tensor patches(const at::Tensor& video) const {
    const std::int64_t dim = spec_.at("dim");
    const at::Tensor kernel = get("embed.patch.weight").view({dim, spec_.at("channels"), 1, 2, 2});
    const at::Tensor cut = at::conv3d(video, kernel, get("embed.patch.bias"), /*stride=*/{1, 2, 2});
    return cut.flatten(2).transpose(1, 2);
  }

  at::Tensor sinusoid(const at::Tensor& time) const {
    const std::int64_t half = spec_.at("freq_dim") / 2;
    std::vector<double> frequencies;
    for (std::int64_t i = 0; i < half; ++i) {
      frequencies.push_back(
          std::exp(-std::log(10'000.0) * static_cast<double>(i) / static_cast<double>(half)));
    }
    const at::Tensor row =
        at::from_blob(frequencies.data(), {1, half}, at::TensorOptions().dtype(at::kDouble));
    const at::Tensor angle = time.view({-1, 1}) * 1000 * row;
    return at::cat({angle.cos(), angle.sin()}, 1);
  }

  at::Tensor turns(std::int64_t head_dim) const {
    const std::int64_t plane = 2 * (head_dim / 6);
    const std::int64_t widths[] = {head_dim - 2 * plane, plane, plane};
    std::vector<double> angles;
    for (std::int64_t frame = 0; frame < spec_.at("frames"); ++frame) {
      for (std::int64_t row = 0; row < spec_.at("height"); ++row) {
        for (std::int64_t column = 0; column < spec_.at("width"); ++column) {
          const std::int64_t places[] = {frame, row, column};
          for (int axis = 0; axis < 3; ++axis) {
            for (std::int64_t even = 0; even < widths[axis]; even += 2) {
              const double exponent = static_cast<double>(even) / static_cast<double>(widths[axis]);
              angles.push_back(static_cast<double>(places[axis]) / std::pow(10'000.0, exponent));
            }
          }
        }
      }
    }
    const at::Tensor angle = at::from_blob(angles.data(), {spec_.at("tokens"), 1, head_dim / 2},
                                           at::TensorOptions().dtype(at::kDouble))
                                 .clone();
    return at::polar(at::ones_like(angle), angle);
  }

  at::Tensor turn(const at::Tensor& x) const {
    const at::Tensor pairs = x.reshape({x.size(0), x.size(1), x.size(2), x.size(3) / 2, 2});
    return at::view_as_real(at::view_as_complex(pairs) * turns(x.size(3))).reshape(x.sizes());
  }

  at::Tensor attend(const at::Tensor& x, const at::Tensor& context, const std::string& name,
                    bool rotate) const {
    const std::int64_t dim = spec_.at("dim"), heads = spec_.at("heads"), head_dim = dim / heads;
    at::Tensor q =
        at::rms_norm(linear(name + ".query", x), {dim}, get(name + ".query_norm.weight"), 1e-6);
    at::Tensor k =
        at::rms_norm(linear(name + ".key", context), {dim}, get(name + ".key_norm.weight"), 1e-6);
    q = q.view({x.size(0), -1, heads, head_dim});
    k = k.view({x.size(0), -1, heads, head_dim});
    if (rotate) {
      q = turn(q);
      k = turn(k);
    }
    const at::Tensor v =
        linear(name + ".value", context).view({x.size(0), -1, heads, head_dim}).transpose(1, 2);
    const at::Tensor scores = q.transpose(1, 2).matmul(k.permute({0, 2, 3, 1})) /
                              std::sqrt(static_cast<double>(head_dim));
    return linear(name + ".output",
                  scores.softmax(-1).matmul(v).transpose(1, 2).reshape(x.sizes()));
  }

  at::Tensor block(at::Tensor x, const at::Tensor& text, const at::Tensor& time,
                   const std::string& name) const {
    const auto e = (get(name + ".modulation") + time).chunk(6, 1);
    at::Tensor n = plain_norm(x) * (1 + e[1]) + e[0];
    x = x + attend(n, n, name + ".self_attention", true) * e[2];
    n = at::layer_norm(x, {x.size(-1)}, get(name + ".cross_attention_norm.weight"),
                       get(name + ".cross_attention_norm.bias"), 1e-6);
    x = x + attend(n, text, name + ".cross_attention", false);
    n = plain_norm(x) * (1 + e[4]) + e[3];
    return x + linear(name + ".ffn.down", at::gelu(linear(name + ".ffn.up", n), "tanh")) * e[5];
  }

  ModelSpec spec_;
  std::map<std::string, at::Tensor> parameters_;
};

}  // namespace

TEST_CASE("the DiT's loss and gradients equal the results of plain code in double") {
  const ModelSpec spec = spec_of("wan_small", {{"layers", 2},
                                               {"dim", 64},
                                               {"heads", 4},
                                               {"ffn", 48},
                                               {"frames", 3},
                                               {"height", 2},
                                               {"width", 4},
                                               {"text_tokens", 5},
                                               {"channels", 3}});
  const auto model = make_model(spec, at::kCPU);
  const Batch batch = make_data(spec, "", 1, at::kCPU)->batch(0);
  const WanReference reference(spec, parameters_in_double(*model));
  check_against_reference(*model, batch, reference.loss(batch), reference.parameters());
}
