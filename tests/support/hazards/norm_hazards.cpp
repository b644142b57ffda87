// Norms whose forward updates statistics, with and without weights, and averages computed by hand.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>

#include "tests/support/hazards/hazard.h"

namespace rematch::testing::hazards {
namespace {

const std::vector<Shape> kChannelWeights = {{kDim}, {kDim}};
const Options kStatistics = {.buffers = {{kDim}, {kDim}}};

std::vector<Hazard> batch_norms() {
  const Options images = {.input = {2, 4, 3, 3}, .buffers = {{4}, {4}}};
  return {
      hazard(
          "batch norm in training", kChannelWeights,
          [](const at::Tensor& x, const Parts& p) {
            return at::batch_norm(x, p[0], p[1], p.buffers[0], p.buffers[1], true, 0.1, 1e-5,
                                  false);
          },
          kStatistics),
      hazard(
          "batch norm of images in channels-last format", {{4}, {4}},
          [](const at::Tensor& x, const Parts& p) {
            return at::batch_norm(x.contiguous(at::MemoryFormat::ChannelsLast), p[0], p[1],
                                  p.buffers[0], p.buffers[1], true, 0.1, 1e-5, false);
          },
          images),
      hazard(
          "batch norm without weights, then a matmul", {{kDim, kDim}},
          [](const at::Tensor& x, const Parts& p) {
            return at::mm(
                at::batch_norm(x, {}, {}, p.buffers[0], p.buffers[1], true, 0.1, 1e-5, false),
                p[0]);
          },
          kStatistics),
      hazard(
          "batch norm in evaluation mode", kChannelWeights,
          [](const at::Tensor& x, const Parts& p) {
            return at::batch_norm(x.sin(), p[0], p[1], p.buffers[0], p.buffers[1], false, 0.1, 1e-5,
                                  false);
          },
          kStatistics),
      hazard("batch norm without statistics", kChannelWeights,
             [](const at::Tensor& x, const Parts& p) {
               return at::batch_norm(x.sin(), p[0], p[1], {}, {}, true, 0.1, 1e-5, false);
             }),
      hazard(
          "batch norm twice over the same statistics", kChannelWeights,
          [](const at::Tensor& x, const Parts& p) {
            const at::Tensor y =
                at::batch_norm(x, p[0], p[1], p.buffers[0], p.buffers[1], true, 0.1, 1e-5, false);
            return at::batch_norm(y.sin(), p[0], p[1], p.buffers[0], p.buffers[1], true, 0.1, 1e-5,
                                  false);
          },
          kStatistics),
      hazard(
          "batch norm that trains and then evaluates with its statistics", kChannelWeights,
          [](const at::Tensor& x, const Parts& p) {
            const at::Tensor y =
                at::batch_norm(x, p[0], p[1], p.buffers[0], p.buffers[1], true, 0.1, 1e-5, false);
            return at::batch_norm(y.sin(), p[0], p[1], p.buffers[0], p.buffers[1], false, 0.1, 1e-5,
                                  false);
          },
          kStatistics),
      hazard("batch norm with a cumulative average", kChannelWeights,
             [](const at::Tensor& x, const Parts& p) {
               at::Tensor count = p.buffers[2];
               count.add_(1);
               return at::batch_norm(x, p[0], p[1], p.buffers[0], p.buffers[1], true,
                                     1.0 / count.item<double>(), 1e-5, false);
             },
             {.buffers = {{kDim}, {kDim}, {}}}),
      hazard(
          "batch norm of bfloat16 with float statistics", {{kDim, kDim}},
          [](const at::Tensor& x, const Parts& p) {
            const at::Tensor y = at::mm(x, p[0]).to(at::kBFloat16);
            return at::batch_norm(y, {}, {}, p.buffers[0], p.buffers[1], true, 0.1, 1e-5, false)
                .to(at::kFloat);
          },
          kStatistics),
      hazard(
          "_native_batch_norm_legit", kChannelWeights,
          [](const at::Tensor& x, const Parts& p) {
            at::Tensor mean = p.buffers[0];
            at::Tensor variance = p.buffers[1];
            return std::get<0>(
                at::_native_batch_norm_legit(x.sin(), p[0], p[1], mean, variance, true, 0.1, 1e-5));
          },
          kStatistics),
      hazard(
          "_batch_norm_with_update", kChannelWeights,
          [](const at::Tensor& x, const Parts& p) {
            at::Tensor mean = p.buffers[0];
            at::Tensor variance = p.buffers[1];
            return std::get<0>(
                at::_batch_norm_with_update(x.sin(), p[0], p[1], mean, variance, 0.1, 1e-5));
          },
          kStatistics),
  };
}

std::vector<Hazard> other_norms() {
  const Shape image = {2, 4, 3, 3};
  return {
      hazard("instance norm with running statistics", {{4}, {4}},
             [](const at::Tensor& x, const Parts& p) {
               return at::instance_norm(x, p[0], p[1], p.buffers[0], p.buffers[1], true, 0.1, 1e-5,
                                        false);
             },
             {.input = image, .buffers = {{4}, {4}}}),
      hazard("instance norm in evaluation mode", {{4}, {4}},
             [](const at::Tensor& x, const Parts& p) {
               return at::instance_norm(x.sin(), p[0], p[1], p.buffers[0], p.buffers[1], false, 0.1,
                                        1e-5, false);
             },
             {.input = image, .buffers = {{4}, {4}}}),
      hazard("instance norm without statistics", {{4}, {4}},
             [](const at::Tensor& x, const Parts& p) {
               return at::instance_norm(x.sin(), p[0], p[1], {}, {}, true, 0.1, 1e-5, false);
             },
             {.input = image}),
      hazard("group norm", {{4}, {4}},
             [](const at::Tensor& x, const Parts& p) {
               return at::group_norm(x.sin(), 2, p[0], p[1], 1e-5);
             },
             {.input = image}),
      hazard("group norm with one group, channels last, without weights", {{4, 1, 1}},
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor y = (x * p[0]).contiguous(at::MemoryFormat::ChannelsLast);
               return at::group_norm(y, 1, {}, {}, 1e-5);
             },
             {.input = image}),
      hazard("layer norm without weights", {{kDim, kDim}},
             [](const at::Tensor& x, const Parts& p) {
               return at::layer_norm(at::mm(x, p[0]), {kDim}, {}, {}, 1e-5);
             }),
      hazard("rms norm", {{kDim}},
             [](const at::Tensor& x, const Parts& p) {
               return at::rms_norm(x.sin(), {kDim}, p[0], 1e-6);
             }),
      hazard("weight norm", {{kDim, kDim}, {kDim, 1}},
             [](const at::Tensor& x, const Parts& p) {
               return at::linear(x.sin(), at::_weight_norm(p[0], p[1], 0));
             }),
      hazard("renormalized rows and a vector norm", {{kDim, kDim}},
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor y = at::renorm(at::mm(x, p[0]), 2, 0, 0.7);
               return y / at::norm(y, 2, {1}, true).clamp_min(1e-6);
             }),
  };
}

// Averages that forward maintains by hand, without a gradient.
std::vector<Hazard> averages() {
  return {
      // Backward needs the norm's result first. Recompute must nevertheless run the op that reads
      // `mean` before the norm, which overwrites `mean`.
      hazard("statistics that are read and then written by a norm without grad mode",
             {{kTokens, kDim}},
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor mean = x.detach().mean(0);
               const at::Tensor variance = at::ones_like(mean);
               const at::Tensor early = (x + mean).exp();
               at::Tensor normed;
               {
                 at::NoGradGuard no_grad;
                 normed = std::get<0>(
                     at::native_batch_norm(x.detach(), {}, {}, mean, variance, true, 0.5, 1e-5));
               }
               const at::Tensor weighted = p[0] * normed;
               return early * 0.1 + weighted;
             }),
      hazard("a moving mean that is read before a write", {{kDim, kDim}},
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor y = at::mm(x, p[0]);
               at::Tensor mean = p.buffers[0];
               const at::Tensor centred = y - mean;
               at::NoGradGuard no_grad;
               mean.mul_(0.9).add_(y.detach().mean(0), 0.1);
               at::AutoGradMode grad(true);
               return centred.sin();
             },
             {.buffers = {{kDim}}}),
      hazard("a moving mean that is written before a read", {{kDim, kDim}},
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor y = at::mm(x, p[0]);
               at::Tensor mean = p.buffers[0];
               mean.mul_(0.9).add_(y.detach().mean(0), 0.1);
               return (y - mean).sin() * mean;
             },
             {.buffers = {{kDim}}}),
      hazard(
          "spectral norm by power iteration", {{kDim, kDim}},
          [](const at::Tensor& x, const Parts& p) {
            at::Tensor u = p.buffers[0];
            at::Tensor v = p.buffers[1];
            {
              at::NoGradGuard no_grad;
              v.copy_(at::mv(p[0].t(), u));
              v.div_(at::norm(v).clamp_min(1e-6));
              u.copy_(at::mv(p[0], v));
              u.div_(at::norm(u).clamp_min(1e-6));
            }
            const at::Tensor sigma = at::dot(u.clone(), at::mv(p[0], v.clone()));
            return at::linear(x.sin(), p[0] / sigma);
          },
          kStatistics),
      hazard("a forward that uses a moving average of the weights", {{kDim, kDim}},
             [](const at::Tensor& x, const Parts& p) {
               at::Tensor average = p.buffers[0];
               {
                 at::NoGradGuard no_grad;
                 average.lerp_(p[0], 0.1);
               }
               return at::mm(x.sin(), p[0]) * at::mm(x.detach(), average);
             },
             {.buffers = {{kDim, kDim}}}),
      hazard("an embedding with a bounded norm", {{10, kDim}},
             [](const at::Tensor& x, const Parts& p) {
               at::Tensor table = p[0];
               {
                 at::NoGradGuard no_grad;
                 at::embedding_renorm_(table, indices(kTokens, 4), 0.5, 2);
               }
               return x * at::embedding(table, indices(kTokens, 4)).sin();
             }),
      hazard("counters of calls and of tokens", {{kDim, kDim}},
             [](const at::Tensor& x, const Parts& p) {
               at::Tensor calls = p.buffers[0];
               at::Tensor positive = p.buffers[1];
               const at::Tensor y = at::mm(x, p[0]);
               calls.add_(1);
               positive.add_(at::gt(y.detach(), 0).to(at::kFloat).sum(0));
               return y.sin() * calls.clone();
             },
             {.buffers = {{}, {kDim}}}),
      hazard("vector quantization with a codebook of moving averages", {{kDim, kDim}},
             [](const at::Tensor& x, const Parts& p) {
               at::Tensor codes = p.buffers[0];
               const at::Tensor y = at::mm(x, p[0]);
               const at::Tensor nearest = at::cdist(y.detach(), codes.clone()).argmin(1);
               const at::Tensor quantized = codes.index_select(0, nearest);
               {
                 at::NoGradGuard no_grad;
                 codes.index_add_(0, nearest, y.detach() - quantized, 0.1);
               }
               return (y + (quantized - y).detach()) * y.sin();
             },
             {.buffers = {{4, kDim}}}),
      hazard("a range observer with fake quantization", {{kDim, kDim}},
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor y = at::mm(x, p[0]);
               at::Tensor low = p.buffers[0];
               at::Tensor high = p.buffers[1];
               low.copy_(at::minimum(low, y.detach().min()));
               high.copy_(at::maximum(high, y.detach().max()));
               const at::Tensor scale = (high - low) / 15;
               const at::Tensor zero = at::zeros({}, at::TensorOptions(at::kInt));
               return at::fake_quantize_per_tensor_affine(y, scale, zero, -8, 7).sin();
             },
             {.buffers = {{}, {}}}),
      {"a fused observer that updates ranges, scale and zero point",
       [] {
         const at::Tensor zero_point = at::zeros({1}, at::TensorOptions(at::kInt));
         const auto layer = [zero_point](const at::Tensor& x, const Parts& p) {
           const at::Tensor on = at::ones({1}, at::TensorOptions(at::kLong));
           at::Tensor low = p.buffers[0];
           at::Tensor high = p.buffers[1];
           at::Tensor scale = p.buffers[2];
           at::Tensor zero = zero_point;
           return at::fused_moving_avg_obs_fake_quant(at::mm(x, p[0]), on, on, low, high, scale,
                                                      zero, 0.1, -8, 7, 0)
               .sin();
         };
         Model model = layers_of({{kDim, kDim}}, layer, {.buffers = {{1}, {1}, {1}}});
         model.buffers.push_back(zero_point);
         return model;
       }},
  };
}

}  // namespace

std::vector<Hazard> norm_hazards() {
  std::vector<Hazard> all = batch_norms();
  for (const auto& more : {other_norms(), averages()}) {
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

}  // namespace rematch::testing::hazards
