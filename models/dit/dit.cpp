// Shapes: B batch, C channels, f h w the token grid, N = f h w tokens, L text tokens, D dim,
// P = 4 C values of a patch.
#include "models/dit/dit.h"

#include <ATen/ops/add.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/chunk.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/sub.h>

#include <cmath>

#include "models/dit/block.h"
#include "models/scope/scope.h"

namespace rematch {
namespace {

constexpr double kRotaryTheta = 1e4;
constexpr double kTimeTheta = 1e4;
constexpr double kTimeScale = 1000.0;  // flow time 1 is Wan's last timestep
constexpr std::int64_t kPatch = 2;     // height and width of a patch; one frame

struct Grid {
  std::int64_t batch, channels, frames, height, width;
  std::int64_t tokens() const { return frames * height * width; }
  std::int64_t patch_values() const { return channels * kPatch * kPatch; }
};

// Height and width get 2 * (E / 6) dimensions each, time the rest: 44, 42, 42 of 128.
RotaryTable make_table(const Grid& grid, std::int64_t head_dim, at::Device device) {
  const std::int64_t plane_dim = 2 * (head_dim / 6);
  RotaryAxis time{{}, rotary_frequencies(head_dim - 2 * plane_dim, kRotaryTheta)};
  RotaryAxis vertical{{}, rotary_frequencies(plane_dim, kRotaryTheta)};
  RotaryAxis horizontal{{}, rotary_frequencies(plane_dim, kRotaryTheta)};
  for (std::int64_t token = 0; token < grid.tokens(); ++token) {
    time.positions.push_back(token / (grid.height * grid.width));
    vertical.positions.push_back(token / grid.width % grid.height);
    horizontal.positions.push_back(token % grid.width);
  }
  return make_rotary_table({time, vertical, horizontal}, device);
}

// [1, freq_dim / 2]: theta^(-i / (freq_dim / 2)), float32 of the double.
at::Tensor make_time_frequencies(std::int64_t freq_dim, at::Device device) {
  const std::int64_t half = freq_dim / 2;
  const auto options = at::TensorOptions().dtype(at::kFloat);
  if (device.is_meta()) return at::empty({1, half}, options.device(device));
  const at::Tensor frequencies = at::empty({1, half}, options);
  auto* elements = frequencies.data_ptr<float>();
  for (std::int64_t index = 0; index < half; ++index) {
    const double exponent = static_cast<double>(index) / static_cast<double>(half);
    elements[index] = static_cast<float>(1.0 / std::pow(kTimeTheta, exponent));
  }
  return frequencies.to(device);
}

class Dit final : public Model {
 public:
  Dit(const ModelSpec& spec, at::Device device)
      : grid_{spec.at("batch"), spec.at("channels"), spec.at("frames"), spec.at("height"),
              spec.at("width")},
        dtype_(dtype_of(spec)),
        parameters_(dtype_, device) {
    const std::int64_t dim = spec.at("dim");
    table_ = make_table(grid_, dim / spec.at("heads"), device);
    time_frequencies_ = make_time_frequencies(spec.at("freq_dim"), device);
    patch_ = make("embed.patch", grid_.patch_values(), dim);
    time_in_ = make("embed.time.in", spec.at("freq_dim"), dim);
    time_out_ = make("embed.time.out", dim, dim);
    time_projection_ = make("embed.time.projection", dim, 6 * dim);
    text_in_ = make("embed.text.in", spec.at("text_dim"), dim);
    text_out_ = make("embed.text.out", dim, dim);
    for (std::int64_t layer = 0; layer < spec.at("layers"); ++layer) {
      blocks_.emplace_back(parameters_, "blocks." + std::to_string(layer), spec);
    }
    head_modulation_ = parameters_.add("head.modulation", {1, 2, dim}, uniform_by_fan_in(dim));
    output_ = make("head.output", dim, grid_.patch_values());
  }

  at::Tensor loss(const Batch& batch) override {
    const at::Tensor& latents = batch.tensors.at(0);
    const at::Tensor& noise = batch.tensors.at(1);
    Embedded embedded = embed(latents, noise, batch.tensors.at(2), batch.tensors.at(3));
    at::Tensor x_BND = std::move(embedded.video_BND);
    for (std::size_t layer = 0; layer < blocks_.size(); ++layer) {
      const Scope scope("blocks", static_cast<int>(layer));
      x_BND = run_block(
          [this, layer, text = embedded.text_BLD, time = embedded.modulation_B6D](at::Tensor x) {
            return blocks_[layer].forward(std::move(x), text, time, table_);
          },
          std::move(x_BND));
    }
    const at::Tensor velocity = head(std::move(x_BND), embedded.time_BD);
    return flow_matching_loss(velocity, latents, noise);
  }

  const std::vector<NamedTensor>& parameters() const override { return parameters_.list(); }

 private:
  struct Embedded {
    at::Tensor video_BND, text_BLD;
    at::Tensor time_BD, modulation_B6D;  // float32
  };

  Linear make(const std::string& name, std::int64_t inputs, std::int64_t outputs) {
    return make_linear(parameters_, name, inputs, outputs, Bias::kYes);
  }

  Embedded embed(const at::Tensor& latents, const at::Tensor& noise, const at::Tensor& time_B,
                 const at::Tensor& text) const {
    const Scope scope("embed");
    Embedded embedded;
    embedded.video_BND = embed_video(latents, noise, time_B);
    embed_time(time_B, embedded);
    embedded.text_BLD = embed_text(text);
    return embedded;
  }

  // Latents on the straight path to noise, cut into patches (c, y, x). A linear over unfolded
  // patches is Wan's convolution, whose kernel is as large as its stride.
  at::Tensor embed_video(const at::Tensor& latents, const at::Tensor& noise,
                         const at::Tensor& time_B) const {
    const Scope scope("patch");
    const at::Tensor time = time_B.view({grid_.batch, 1, 1, 1, 1});
    at::Tensor step = at::sub(noise, latents);
    step = at::mul(step, time);
    at::Tensor x = at::add(latents, step);
    x = x.view(
        {grid_.batch, grid_.channels, grid_.frames, grid_.height, kPatch, grid_.width, kPatch});
    x = x.permute({0, 2, 3, 5, 1, 4, 6});
    x = x.reshape({grid_.batch, grid_.tokens(), grid_.patch_values()});
    x = x.to(dtype_);
    return apply_linear(patch_, x);
  }

  void embed_time(const at::Tensor& time_B, Embedded& embedded) const {
    const Scope scope("time");
    at::Tensor angle = time_B.view({grid_.batch, 1});
    angle = at::mul(angle, kTimeScale);
    angle = at::mul(angle, time_frequencies_);
    const at::Tensor cosine = at::cos(angle);
    const at::Tensor sine = at::sin(angle);
    at::Tensor x = at::cat({cosine, sine}, -1);
    x = x.to(dtype_);
    x = apply_linear(time_in_, x);
    x = at::silu(x);
    x = apply_linear(time_out_, x);
    embedded.time_BD = x.to(at::kFloat);
    x = at::silu(x);
    x = apply_linear(time_projection_, x);
    x = x.view({grid_.batch, 6, x.size(1) / 6});
    embedded.modulation_B6D = x.to(at::kFloat);
  }

  at::Tensor embed_text(const at::Tensor& text) const {
    const Scope scope("text");
    at::Tensor x = text.to(dtype_);
    x = apply_linear(text_in_, x);
    x = at::gelu(x, "tanh");
    return apply_linear(text_out_, x);
  }

  // Predicted velocity [B, C, f, 2 h, 2 w], float32. Patches come out as (y, x, c), as Wan's do.
  at::Tensor head(at::Tensor x_BND, const at::Tensor& time_BD) const {
    const Scope scope("head");
    at::Tensor table_B2D = head_modulation_.to(at::kFloat);
    const at::Tensor time_B1D = time_BD.unsqueeze(1);
    table_B2D = at::add(table_B2D, time_B1D);
    const std::vector<at::Tensor> table_B1D = at::chunk(table_B2D, 2, /*dim=*/1);
    x_BND = dit::modulate(x_BND, table_B1D[0], table_B1D[1]);
    at::Tensor x = apply_linear(output_, x_BND);
    x = x.view(
        {grid_.batch, grid_.frames, grid_.height, grid_.width, kPatch, kPatch, grid_.channels});
    x = x.permute({0, 6, 1, 2, 4, 3, 5});
    x = x.reshape(
        {grid_.batch, grid_.channels, grid_.frames, grid_.height * kPatch, grid_.width * kPatch});
    return x.to(at::kFloat);
  }

  // Mean squared error to noise - latents.
  static at::Tensor flow_matching_loss(const at::Tensor& velocity, const at::Tensor& latents,
                                       const at::Tensor& noise) {
    const Scope scope("loss");
    at::Tensor error = at::sub(noise, latents);
    error = at::sub(velocity, error);
    error = at::pow(error, 2);
    return at::mean(error);
  }

  Grid grid_;
  at::ScalarType dtype_;
  Parameters parameters_;
  RotaryTable table_;
  at::Tensor time_frequencies_, head_modulation_;
  Linear patch_, time_in_, time_out_, time_projection_, text_in_, text_out_, output_;
  std::vector<dit::Block> blocks_;
};

}  // namespace

std::unique_ptr<Model> make_dit(const ModelSpec& spec, at::Device device) {
  return std::make_unique<Dit>(spec, device);
}

}  // namespace rematch
