// Convolutions in either memory format, pooling and resampling. Their kernels choose a layout by
// the strides of their input.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include "tests/support/hazards/hazard.h"

namespace rematch::testing::hazards {
namespace {

const Options kImages = {.input = {2, 4, 6, 6}};
const Options kRows = {.input = {2, 4, 9}};
const Options kVolumes = {.input = {1, 2, 3, 4, 4}};

std::vector<Hazard> convolutions() {
  return {
      hazard(
          "dilated convolution in one dimension", {{4, 4, 3}, {4}},
          [](const at::Tensor& x, const Parts& p) {
            return at::conv1d(x.sin(), p[0], p[1], 1, 2, 2);
          },
          kRows),
      hazard(
          "convolution with a bias", {{4, 4, 3, 3}, {4}},
          [](const at::Tensor& x, const Parts& p) { return at::conv2d(x.sin(), p[0], p[1], 1, 1); },
          kImages),
      hazard(
          "convolution, channels last", {{4, 4, 3, 3}, {4}},
          [](const at::Tensor& x, const Parts& p) {
            const auto last = at::MemoryFormat::ChannelsLast;
            return at::relu(at::conv2d(x.contiguous(last), p[0].contiguous(last), p[1], 1, 1));
          },
          kImages),
      hazard(
          "grouped and strided convolution, then transposed convolution",
          {{4, 1, 3, 3}, {4, 4, 2, 2}},
          [](const at::Tensor& x, const Parts& p) {
            const at::Tensor y = at::conv2d(x.sin(), p[0], {}, 2, 1, 1, 4);
            return at::conv_transpose2d(y.tanh(), p[1], {}, 2);
          },
          kImages),
      hazard(
          "convolution of volumes", {{2, 2, 3, 3, 3}},
          [](const at::Tensor& x, const Parts& p) { return at::conv3d(x.sin(), p[0], {}, 1, 1); },
          kVolumes),
      hazard(
          "padded transposed convolution in one dimension", {{4, 4, 3}},
          [](const at::Tensor& x, const Parts& p) {
            return at::conv_transpose1d(x.sin(), p[0], {}, 1, 1);
          },
          kRows),
      hazard(
          "convolution as unfold, matmul and fold", {{4 * 9, 4 * 9}},
          [](const at::Tensor& x, const Parts& p) {
            const at::Tensor columns = at::im2col(x, {3, 3}, {1, 1}, {1, 1}, {1, 1});
            const at::Tensor mixed = at::matmul(p[0], columns.tanh());
            return at::col2im(mixed, {6, 6}, {3, 3}, {1, 1}, {1, 1}, {1, 1});
          },
          kImages),
      hazard(
          "causal convolution with padding, and a gate", {{8, 4, 3}},
          [](const at::Tensor& x, const Parts& p) {
            return at::glu(at::conv1d(at::constant_pad_nd(x, {2, 0}), p[0]), 1);
          },
          kRows),
      hazard(
          "convolution with weights that the layer casts to bfloat16", {{4, 4, 3, 3}},
          [](const at::Tensor& x, const Parts& p) {
            return at::conv2d(x.to(at::kBFloat16), p[0].to(at::kBFloat16), {}, 1, 1).to(at::kFloat);
          },
          kImages),
      hazard(
          "convolution in double precision", {{4, 4, 3, 3}, {4}},
          [](const at::Tensor& x, const Parts& p) { return at::conv2d(x.sin(), p[0], p[1], 1, 1); },
          {.input = {2, 4, 6, 6}, .dtype = at::kDouble}),
  };
}

// Each layer pools images after a multiplication by a weight per channel. The weight is trained, so
// the input of the pooling needs a gradient.
Hazard pooled(const std::string& name, const std::function<at::Tensor(const at::Tensor&)>& op,
              const Options& options = kImages) {
  return hazard(
      name, {{4, 1, 1}}, [op](const at::Tensor& x, const Parts& p) { return op(x * p[0]); },
      options);
}

std::vector<Hazard> pools() {
  return {
      pooled("overlapping average and max pools",
             [](const at::Tensor& y) {
               return at::avg_pool2d(y.sin(), {3, 3}, 1, 1) + at::max_pool2d(y, {3, 3}, 1, 1);
             }),
      pooled("max pool with indices, and max unpool",
             [](const at::Tensor& y) {
               const auto [top, where] = at::max_pool2d_with_indices(y.sin(), {2, 2});
               return at::max_unpool2d(top * 2, where, {6, 6});
             }),
      pooled("adaptive pools",
             [](const at::Tensor& y) {
               return at::adaptive_avg_pool2d(y, {3, 3}).repeat({1, 1, 2, 2}) *
                          std::get<0>(at::adaptive_max_pool2d(y, {2, 2})).repeat({1, 1, 3, 3}) +
                      at::adaptive_avg_pool2d(y.cos(), {1, 1});
             }),
      hazard(
          "one-dimensional pools and power-average pools", {{4, 1}},
          [](const at::Tensor& x, const Parts& p) {
            const at::Tensor y = x * p[0];
            return at::max_pool1d(y, {3}, 1, 1) + at::avg_pool1d(y.cos(), {3}, 1, 1) +
                   at::avg_pool1d(y.abs().pow(2), {3}, 1, 1).add(1).sqrt();
          },
          kRows),
      pooled("pools, channels last",
             [](const at::Tensor& y) {
               const at::Tensor last = y.contiguous(at::MemoryFormat::ChannelsLast);
               return at::max_pool2d(last, {3, 3}, 1, 1) + at::avg_pool2d(last, {3, 3}, 1, 1);
             }),
  };
}

std::vector<Hazard> resampling() {
  return {
      pooled("nearest, bilinear and bicubic resampling",
             [](const at::Tensor& y) {
               const at::Tensor small = at::avg_pool2d(y, {2, 2});
               return at::upsample_nearest2d(small, {6, 6}) *
                          at::upsample_bilinear2d(small, {6, 6}, false) +
                      at::upsample_bicubic2d(small.sin(), {6, 6}, true);
             }),
      pooled("pixel shuffle and channel shuffle",
             [](const at::Tensor& y) {
               return at::pixel_unshuffle(at::pixel_shuffle(y.sin(), 2), 2) +
                      at::channel_shuffle(y.cos(), 2);
             }),
      pooled("grid sampling with a learned rotation",
             [](const at::Tensor& y) {
               const at::Tensor turn = at::tanh(y.flatten(1).slice(1, 0, 6)).view({2, 2, 3});
               const at::Tensor grid = at::affine_grid_generator(turn, {2, 4, 6, 6}, false);
               return at::grid_sampler(y, grid, 0, 0, false);
             }),
      pooled("padding by reflection and by replication",
             [](const at::Tensor& y) {
               return at::avg_pool2d(at::reflection_pad2d(y, {1, 1, 1, 1}).sin(), {3, 3}, 1) +
                      at::max_pool2d(at::replication_pad2d(y, {1, 1, 1, 1}), {3, 3}, 1);
             }),
  };
}

}  // namespace

std::vector<Hazard> convolution_hazards() {
  std::vector<Hazard> all = convolutions();
  for (const auto& more : {pools(), resampling()}) all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace rematch::testing::hazards
