#include "models/layers/rotary.h"

#include <ATen/ops/add.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/unbind.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "kernels/fused/rope.h"

namespace rematch {
namespace {

at::Tensor empty_table(std::int64_t num_tokens, std::int64_t num_pairs, at::Device device) {
  const at::Device filled_on = device.is_meta() ? device : at::Device(at::kCPU);
  return at::empty({num_tokens, 1, num_pairs},
                   at::TensorOptions().dtype(at::kFloat).device(filled_on));
}

constexpr double kLlamaTheta = 5e5;

// Constants by which Llama 3.1 stretches long wavelengths: factor, low frequency factor, high
// frequency factor, original context length.
constexpr double kScaleFactor = 8.0;
constexpr double kLowFrequencyFactor = 1.0;
constexpr double kHighFrequencyFactor = 4.0;
constexpr double kLlamaOldContext = 8192.0;

double scale_frequency(double frequency) {
  const double wavelength = 2.0 * std::numbers::pi / frequency;
  if (wavelength < kLlamaOldContext / kHighFrequencyFactor) return frequency;
  if (wavelength > kLlamaOldContext / kLowFrequencyFactor) return frequency / kScaleFactor;
  const double smooth = (kLlamaOldContext / wavelength - kLowFrequencyFactor) /
                        (kHighFrequencyFactor - kLowFrequencyFactor);
  return (1.0 - smooth) * frequency / kScaleFactor + smooth * frequency;
}

constexpr double kYarnTheta = 1e4;

// YaRN's constants for the 16B model of DeepSeek-V3.
constexpr double kYarnOldContext = 4096.0;
constexpr double kYarnFastTurns = 32.0;
constexpr double kYarnSlowTurns = 1.0;

// Returns the index, which may be fractional, of the pair that makes `num_turns` full turns over
// the original context length.
double pair_of_turns(double num_turns, double rope_dim) {
  return rope_dim * std::log(kYarnOldContext / (num_turns * 2.0 * std::numbers::pi)) /
         (2.0 * std::log(kYarnTheta));
}

// Keeps high frequencies, and divides low frequencies by the stretch factor. In between, averages
// the two values.
std::vector<double> yarn_frequencies(std::int64_t rope_dim) {
  const auto width = static_cast<double>(rope_dim);
  const double low = std::max(std::floor(pair_of_turns(kYarnFastTurns, width)), 0.0);
  double high = std::min(std::ceil(pair_of_turns(kYarnSlowTurns, width)), width - 1.0);
  if (low == high) high += 0.001;
  std::vector<double> frequencies = rotary_frequencies(rope_dim, kYarnTheta);
  double pair = 0.0;
  for (double& frequency : frequencies) {
    const double stretched = std::clamp((pair - low) / (high - low), 0.0, 1.0);
    frequency = frequency / kYarnFactor * stretched + frequency * (1.0 - stretched);
    pair += 1.0;
  }
  return frequencies;
}

}  // namespace

std::vector<double> rotary_frequencies(std::int64_t head_dim, double theta) {
  std::vector<double> frequencies;
  for (std::int64_t pair = 0; pair < head_dim / 2; ++pair) {
    const double exponent = static_cast<double>(2 * pair) / static_cast<double>(head_dim);
    frequencies.push_back(1.0 / std::pow(theta, exponent));
  }
  return frequencies;
}

RotaryTable make_rotary_table(const std::vector<RotaryAxis>& axes, at::Device device) {
  std::vector<double> frequencies;
  std::vector<const RotaryAxis*> axis_of;
  for (const RotaryAxis& axis : axes) {
    frequencies.insert(frequencies.end(), axis.frequencies.begin(), axis.frequencies.end());
    axis_of.insert(axis_of.end(), axis.frequencies.size(), &axis);
  }
  const auto angle = [&](std::int64_t token, std::int64_t pair) {
    const auto index = static_cast<std::size_t>(pair);
    const std::int64_t position = axis_of[index]->positions[static_cast<std::size_t>(token)];
    return static_cast<double>(position) * frequencies[index];
  };
  return make_rotary_table(static_cast<std::int64_t>(axes.front().positions.size()),
                           static_cast<std::int64_t>(frequencies.size()), angle, device);
}

RotaryTable make_rotary_table(
    std::int64_t num_tokens, std::int64_t num_pairs,
    const std::function<double(std::int64_t token, std::int64_t pair)>& angle, at::Device device) {
  RotaryTable table;
  table.cosine = empty_table(num_tokens, num_pairs, device);
  table.sine = empty_table(num_tokens, num_pairs, device);
  if (device.is_meta()) return table;
  auto* cosine = table.cosine.data_ptr<float>();
  auto* sine = table.sine.data_ptr<float>();
  for (std::int64_t token = 0; token < num_tokens; ++token) {
    for (std::int64_t pair = 0; pair < num_pairs; ++pair) {
      const double turn = angle(token, pair);
      *cosine++ = static_cast<float>(std::cos(turn));
      *sine++ = static_cast<float>(std::sin(turn));
    }
  }
  table.cosine = table.cosine.to(device);
  table.sine = table.sine.to(device);
  return table;
}

RotaryTable rows_of_rank(RotaryTable table, const RankAxis& axis) {
  if (!axis.is_split()) return table;
  for (at::Tensor* part : {&table.cosine, &table.sine}) {
    const std::int64_t count = part->size(0) / axis.size;
    *part = part->narrow(0, axis.position * count, count).clone();
  }
  return table;
}

RotaryTable make_llama_table(std::int64_t num_tokens, std::int64_t head_dim, at::Device device) {
  RotaryAxis axis;
  for (std::int64_t token = 0; token < num_tokens; ++token) axis.positions.push_back(token);
  for (const double frequency : rotary_frequencies(head_dim, kLlamaTheta)) {
    axis.frequencies.push_back(scale_frequency(frequency));
  }
  return make_rotary_table({axis}, device);
}

RotaryTable make_yarn_table(std::int64_t num_tokens, std::int64_t rope_dim, at::Device device) {
  RotaryAxis axis{{}, yarn_frequencies(rope_dim)};
  for (std::int64_t token = 0; token < num_tokens; ++token) axis.positions.push_back(token);
  return make_rotary_table({axis}, device);
}

at::Tensor apply_rotary(const at::Tensor& x_BSHD, const RotaryTable& table, Ops ops) {
  if (ops == Ops::kFused) return fused::rope(x_BSHD, table.cosine, table.sine);
  const at::Tensor wide = x_BSHD.to(at::kFloat);
  const std::vector<at::Tensor> pair =
      at::unbind(wide.view({wide.size(0), wide.size(1), wide.size(2), wide.size(3) / 2, 2}), -1);
  at::Tensor left = at::mul(pair[0], table.cosine);
  at::Tensor right = at::mul(pair[1], table.sine);
  const at::Tensor turned_even = at::sub(left, right);
  left = at::mul(pair[0], table.sine);
  right = at::mul(pair[1], table.cosine);
  const at::Tensor turned_odd = at::add(left, right);
  at::Tensor turned = at::stack({turned_even, turned_odd}, -1);
  turned = turned.view(wide.sizes());
  return turned.to(x_BSHD.scalar_type());
}

}  // namespace rematch
