// Shapes: B batch, C channels, F frames, Y x X latent pixels, L text tokens, W text width.
#include "models/data/shapes.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/sub.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>

#include "models/data/hash_noise.h"

namespace rematch {
namespace {

constexpr std::array<const char*, 4> kShapes = {"square", "disc", "diamond", "cross"};
constexpr std::int64_t kNumColours = 8;
struct Direction {
  std::int64_t down, right;
};
constexpr std::array<Direction, 8> kDirections = {
    {{0, 1}, {1, 1}, {1, 0}, {1, -1}, {0, -1}, {-1, -1}, {-1, 0}, {-1, 1}}};

// The content of one video. `top` and `left` are the position of the shape's centre at frame 0.
struct Scene {
  std::size_t shape, direction;
  std::int64_t colour, top, left, radius;
};

std::int64_t draw(std::uint64_t counter, std::int64_t choices) {
  return static_cast<std::int64_t>(splitmix64(counter) % static_cast<std::uint64_t>(choices));
}

Scene make_scene(std::uint64_t counter, std::int64_t height, std::int64_t width) {
  Scene scene{};
  scene.shape = static_cast<std::size_t>(draw(counter, kShapes.size()));
  scene.direction = static_cast<std::size_t>(draw(counter + 1, kDirections.size()));
  scene.colour = draw(counter + 2, kNumColours);
  scene.top = draw(counter + 3, height);
  scene.left = draw(counter + 4, width);
  scene.radius = std::max<std::int64_t>(1, std::min(height, width) / 4);
  return scene;
}

// Returns the shortest distance between two positions on a circle of `extent` positions.
std::int64_t circular_distance(std::int64_t from, std::int64_t to, std::int64_t extent) {
  const std::int64_t distance = ((to - from) % extent + extent) % extent;
  return std::min(distance, extent - distance);
}

bool covers(const Scene& scene, std::int64_t dy, std::int64_t dx) {
  const std::int64_t radius = scene.radius;
  switch (scene.shape) {
    case 0:
      return std::max(dy, dx) <= radius;
    case 1:
      return dy * dy + dx * dx <= radius * radius;
    case 2:
      return dy + dx <= radius;
    default:
      return std::max(dy, dx) <= radius && std::min(dy, dx) <= radius / 3;
  }
}

// Returns element `column` of the table row named `row`. A row represents a word, a colour or the
// background. Elements are multiples of 2^-23 in [-1, 1).
float table_entry(const std::string& row, std::int64_t column) {
  return hash_to_signed_unit(splitmix64(fnv1a64(row) + static_cast<std::uint64_t>(column)));
}

class ShapeData final : public DataSource {
 public:
  ShapeData(const ModelSpec& spec, std::uint64_t seed, at::Device device)
      : batch_(spec.at("batch")),
        channels_(spec.at("channels")),
        frames_(spec.at("frames")),
        height_(video_layout(spec.family)->patch_extent * spec.at("height")),
        width_(video_layout(spec.family)->patch_extent * spec.at("width")),
        text_tokens_(spec.at("text_tokens")),
        text_dim_(spec.at("text_dim")),
        has_mask_(video_layout(spec.family)->masks_text),
        seed_(seed),
        device_(device) {}

  Batch batch(std::int64_t step) override {
    const auto options = at::TensorOptions()
                             .dtype(at::kFloat)
                             .device(device_.is_meta() ? device_ : at::Device(at::kCPU));
    const at::Tensor latents = at::empty({batch_, channels_, frames_, height_, width_}, options);
    const at::Tensor noise = at::empty(latents.sizes(), options);
    const at::Tensor time = at::empty({batch_}, options);
    const at::Tensor text = at::empty({batch_, text_tokens_, text_dim_}, options);
    Batch batch{{latents, noise, time, text}};
    if (has_mask_) batch.tensors.push_back(at::empty({batch_, text_tokens_}, options));
    if (device_.is_meta()) return batch;
    fill_scenes(step, latents.data_ptr<float>(), text.data_ptr<float>());
    fill_noise(step, noise);
    fill_time(step, time.data_ptr<float>());
    if (has_mask_) fill_mask(batch.tensors.back().data_ptr<float>());
    for (at::Tensor& tensor : batch.tensors) tensor = tensor.to(device_);
    return batch;
  }

 private:
  // number of hash counters reserved for each scene
  static constexpr std::uint64_t kDrawsOfScene = 8;
  static constexpr std::int64_t kNumWords = 3;  // text tokens after these words are padding

  void fill_scenes(std::int64_t step, float* latents, float* text) const {
    const std::uint64_t counter = stream_counter(seed_, "scene", step);
    for (std::int64_t row = 0; row < batch_; ++row) {
      const Scene scene =
          make_scene(counter + kDrawsOfScene * static_cast<std::uint64_t>(row), height_, width_);
      for (std::int64_t channel = 0; channel < channels_; ++channel) {
        latents = draw_channel(scene, channel, latents);
      }
      text = describe(scene, text);
    }
  }

  float* draw_channel(const Scene& scene, std::int64_t channel, float* out) const {
    const float background = 0.5F * table_entry("background", channel);
    const float colour = 2.0F * table_entry("colour" + std::to_string(scene.colour), channel);
    const Direction direction = kDirections[scene.direction];
    for (std::int64_t frame = 0; frame < frames_; ++frame) {
      const std::int64_t centre_y = scene.top + frame * direction.down;
      const std::int64_t centre_x = scene.left + frame * direction.right;
      for (std::int64_t y = 0; y < height_; ++y) {
        const std::int64_t dy = circular_distance(centre_y, y, height_);
        for (std::int64_t x = 0; x < width_; ++x) {
          const std::int64_t dx = circular_distance(centre_x, x, width_);
          *out++ = covers(scene, dy, dx) ? colour : background;
        }
      }
    }
    return out;
  }

  float* describe(const Scene& scene, float* out) const {
    const std::array<std::string, kNumWords> words = {
        kShapes[scene.shape], "colour" + std::to_string(scene.colour),
        "direction" + std::to_string(scene.direction)};
    for (std::int64_t token = 0; token < text_tokens_; ++token) {
      const std::string word =
          token < kNumWords ? words[static_cast<std::size_t>(token)] : "padding";
      const std::string row = "word " + word;
      for (std::int64_t column = 0; column < text_dim_; ++column) {
        *out++ = table_entry(row, column);
      }
    }
    return out;
  }

  void fill_mask(float* mask) const {
    for (std::int64_t row = 0; row < batch_; ++row) {
      for (std::int64_t token = 0; token < text_tokens_; ++token) {
        *mask++ = token < kNumWords ? 1.0F : 0.0F;
      }
    }
  }

  void fill_noise(std::int64_t step, const at::Tensor& noise) const {
    const std::uint64_t counter = stream_counter(seed_, "noise", step);
    auto* elements = noise.data_ptr<float>();
    for (std::int64_t index = 0; index < noise.numel(); ++index) {
      elements[index] = hash_to_normal(counter + static_cast<std::uint64_t>(index));
    }
  }

  void fill_time(std::int64_t step, float* time) const {
    const std::uint64_t counter = stream_counter(seed_, "time", step);
    for (std::int64_t row = 0; row < batch_; ++row) {
      time[row] = hash_to_open_unit(splitmix64(counter + static_cast<std::uint64_t>(row)));
    }
  }

  std::int64_t batch_, channels_, frames_, height_, width_, text_tokens_, text_dim_;
  bool has_mask_;
  std::uint64_t seed_;
  at::Device device_;
};

}  // namespace

std::unique_ptr<DataSource> make_shape_data(const ModelSpec& spec, std::uint64_t seed,
                                            at::Device device) {
  return std::make_unique<ShapeData>(spec, seed, device);
}

double best_constant_predictor_loss(const std::vector<Batch>& batches) {
  at::Tensor mean_C, square_C;
  for (const Batch& batch : batches) {
    const at::Tensor velocity = at::sub(batch.tensors.at(1), batch.tensors.at(0)).to(at::kDouble);
    const at::Tensor batch_mean = velocity.mean({0, 2, 3, 4});
    const at::Tensor batch_square = velocity.pow(2).mean({0, 2, 3, 4});
    mean_C = mean_C.defined() ? mean_C + batch_mean : batch_mean;
    square_C = square_C.defined() ? square_C + batch_square : batch_square;
  }
  const auto count = static_cast<double>(batches.size());
  const at::Tensor variance_C = square_C / count - (mean_C / count).pow(2);
  return variance_C.mean().item<double>();
}

}  // namespace rematch
