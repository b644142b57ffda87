#include "models/layers/rotary.h"

#include <ATen/ops/add.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/unbind.h>

#include <cmath>

namespace rematch {
namespace {

void fill_tables(const std::vector<RotaryAxis>& axes, float* cosine, float* sine) {
  const std::size_t num_tokens = axes.front().positions.size();
  for (std::size_t token = 0; token < num_tokens; ++token) {
    for (const RotaryAxis& axis : axes) {
      for (const double frequency : axis.frequencies) {
        const double angle = static_cast<double>(axis.positions[token]) * frequency;
        *cosine++ = static_cast<float>(std::cos(angle));
        *sine++ = static_cast<float>(std::sin(angle));
      }
    }
  }
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
  std::int64_t num_pairs = 0;
  for (const RotaryAxis& axis : axes) {
    num_pairs += static_cast<std::int64_t>(axis.frequencies.size());
  }
  const auto num_tokens = static_cast<std::int64_t>(axes.front().positions.size());
  const at::Device filled_on = device.is_meta() ? device : at::Device(at::kCPU);
  const auto options = at::TensorOptions().dtype(at::kFloat).device(filled_on);
  RotaryTable table;
  table.cosine = at::empty({num_tokens, 1, num_pairs}, options);
  table.sine = at::empty({num_tokens, 1, num_pairs}, options);
  if (device.is_meta()) return table;
  fill_tables(axes, table.cosine.data_ptr<float>(), table.sine.data_ptr<float>());
  table.cosine = table.cosine.to(device);
  table.sine = table.sine.to(device);
  return table;
}

at::Tensor apply_rotary(const at::Tensor& x_BSHD, const RotaryTable& table) {
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
