// Ops that draw random numbers. Recompute must draw the same numbers and leave every generator
// where forward left it.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include "tests/support/hazards/hazard.h"

namespace rematch::testing::hazards {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Makes a layer that multiplies and then applies dropout with `drop`.
Hazard dropped(const std::string& name, const std::function<at::Tensor(const at::Tensor&)>& drop,
               const Options& options = {}) {
  return hazard(
      name, kSquare,
      [drop](const at::Tensor& x, const Parts& p) { return drop(at::mm(x, p[0])).sin(); }, options);
}

std::vector<Hazard> dropouts() {
  return {
      dropped("dropout", [](const at::Tensor& y) { return at::dropout(y, 0.3, true); }),
      dropped("dropout with probability 0 and 1",
              [](const at::Tensor& y) {
                return at::dropout(y, 0.0, true) + at::dropout(y, 1.0, true) +
                       at::dropout(y, 0.5, false);
              }),
      dropped("random draws with probability zero, which still advance the generator",
              [](const at::Tensor& y) {
                const at::Tensor none = at::empty_like(y).bernoulli_(0.0);
                const auto [all, mask] = at::native_dropout(y, 0.0, true);
                return at::dropout(y + none + at::bernoulli(y.detach(), 0.0), 0.2, true) + all;
              }),
      dropped("dropout_ in place",
              [](const at::Tensor& y) {
                at::Tensor z = y * 2;
                return at::dropout_(z, 0.3, true);
              }),
      dropped("alpha dropout", [](const at::Tensor& y) { return at::alpha_dropout(y, 0.3, true); }),
      dropped("alpha_dropout_ in place",
              [](const at::Tensor& y) {
                at::Tensor z = y * 2;
                return at::alpha_dropout_(z, 0.3, true);
              }),
      dropped("feature dropout",
              [](const at::Tensor& y) {
                return at::feature_dropout(y.view({2, 3, 8}), 0.4, true).flatten(0, 1);
              }),
      dropped("feature alpha dropout",
              [](const at::Tensor& y) {
                return at::feature_alpha_dropout(y.view({2, 3, 8}), 0.4, true).flatten(0, 1);
              }),
      dropped("native dropout",
              [](const at::Tensor& y) {
                const auto [kept, mask] = at::native_dropout(y, 0.3, true);
                return kept + at::where(mask, y, -y);
              }),
      dropped("rrelu", [](const at::Tensor& y) { return at::rrelu(y, 0.1, 0.4, true); }),
      dropped("rrelu_ in place",
              [](const at::Tensor& y) {
                at::Tensor z = y * 2;
                return at::rrelu_(z, 0.1, 0.4, true);
              }),
      dropped("rrelu in evaluation",
              [](const at::Tensor& y) { return at::rrelu(y, 0.1, 0.4, false); }),
      dropped("a random mask with two uses",
              [](const at::Tensor& y) {
                const at::Tensor mask = at::empty_like(y).bernoulli_(0.7).div_(0.7);
                return y * mask + (y.sin() * mask);
              }),
      hazard("stochastic depth: a random number selects a branch", kSquare,
             [](const at::Tensor& x, const Parts& p) {
               const bool skip = at::rand({}).item<double>() > 2.0;
               return skip ? x : at::mm(x, p[0]).sin() * at::rand({kTokens, 1});
             }),
      hazard("attention with dropout", kSquare,
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor q = at::mm(x, p[0]).view({1, kTokens, 2, 4}).transpose(1, 2);
               return at::scaled_dot_product_attention(q, q.sin(), q.cos(), {}, 0.2, true)
                   .transpose(1, 2)
                   .reshape({kTokens, kDim});
             }),
  };
}

std::vector<Hazard> distributions() {
  return {
      dropped("bernoulli of probabilities",
              [](const at::Tensor& y) { return y * at::bernoulli(at::sigmoid(y.detach())); }),
      dropped("bernoulli_ of a tensor",
              [](const at::Tensor& y) {
                return y * at::empty_like(y).bernoulli_(at::sigmoid(y.detach()));
              }),
      dropped("normal numbers that are drawn in pairs, with one left over",
              [](const at::Tensor& y) {
                const at::Tensor few = at::randn({3}, at::TensorOptions(at::kDouble));
                const at::Tensor more = at::randn({5}, at::TensorOptions(at::kDouble));
                return y * few.sum().to(at::kFloat) + y.sin() * more.prod().to(at::kFloat);
              }),
      dropped("normal numbers around a mean that needs a gradient",
              [](const at::Tensor& y) {
                return y + at::normal(0.0, 1.0, y.sizes()) * y.abs() + at::normal(y.detach(), 0.1);
              }),
      dropped("uniform_, exponential_, log_normal_, cauchy_, geometric_, random_",
              [](const at::Tensor& y) {
                at::Tensor z = at::empty_like(y).uniform_(-1, 1);
                z = z + at::empty_like(y).exponential_(2.0) + at::empty_like(y).log_normal_(0, 0.1);
                z = z + at::empty_like(y).cauchy_(0, 0.1).clamp(-1, 1);
                z = z + at::empty_like(y).geometric_(0.5) + at::empty_like(y).random_(0, 3);
                return y * z;
              }),
      dropped("gumbel softmax, hard",
              [](const at::Tensor& y) {
                const at::Tensor noise = at::empty_like(y).exponential_().log().neg();
                const at::Tensor soft = at::softmax((y + noise) / 0.5, -1);
                const at::Tensor index = std::get<1>(soft.max(-1, true));
                const at::Tensor hard = at::zeros_like(y).scatter_(-1, index, 1.0);
                return hard - soft.detach() + soft;
              }),
      dropped("multinomial, randint, randperm",
              [](const at::Tensor& y) {
                const at::Tensor rows = at::multinomial(at::softmax(y.detach(), 0).t(), 3, true);
                const at::Tensor order = at::randperm(kTokens);
                const at::Tensor some = at::randint(0, kTokens, {kTokens});
                return y.index_select(0, order) * y.index_select(0, some) +
                       y.index_select(0, rows.flatten()).sum();
              }),
      dropped("poisson and binomial",
              [](const at::Tensor& y) {
                const at::Tensor rate = at::exp(y.detach());
                return y * at::poisson(rate) +
                       y.sin() * at::binomial(at::full_like(y, 5.0), at::sigmoid(y.detach()));
              }),
      dropped("_standard_gamma and _sample_dirichlet, with gradients",
              [](const at::Tensor& y) {
                const at::Tensor positive = at::softplus(y) + 0.5;
                return at::_standard_gamma(positive).log() +
                       at::_sample_dirichlet(positive.detach());
              }),
      dropped("random noise in dtypes other than float32",
              [](const at::Tensor& y) {
                return y * at::randn({kTokens, kDim}, at::TensorOptions(at::kBFloat16)) +
                       at::rand_like(y, at::TensorOptions(at::kDouble)).to(at::kFloat);
              }),
      dropped("a fractional max pool",
              [](const at::Tensor& y) {
                const at::Tensor samples = at::rand({1, 1, 2});
                return std::get<0>(at::fractional_max_pool2d(y.view({1, 1, kTokens, kDim}), {2, 2},
                                                             {3, 4}, samples))
                           .sum() *
                       y;
              }),
  };
}

// Draws random numbers in backward. The numbers depend on how forward and recompute advanced the
// generator.
struct NoisyGradient : torch::autograd::Function<NoisyGradient> {
  static at::Tensor forward(AutogradContext*, const at::Tensor& x) { return x * 2; }
  static variable_list backward(AutogradContext*, variable_list gradients) {
    return {gradients[0] * 2 + at::randn_like(gradients[0]) * 0.01};
  }
};

std::vector<Hazard> generators() {
  return {
      hazard("a layer with its own generator", kSquare,
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor mask = at::empty_like(x).bernoulli_(0.6, p.generator);
               return at::mm(x * mask, p[0]).sin() + at::dropout(x, 0.2, true);
             }),
      hazard("two alternating generators", kSquare,
             [](const at::Tensor& x, const Parts& p) {
               at::Tensor y = at::mm(x, p[0]);
               for (int i = 0; i < 3; ++i) {
                 y = y * at::empty_like(y).uniform_(0.5, 1.5, p.generator);
                 y = y.sin() + at::rand_like(y);
               }
               return y;
             }),
      hazard("a layer that seeds the generator again", kSquare,
             [](const at::Tensor& x, const Parts& p) {
               at::Generator(p.generator).set_current_seed(7);
               const at::Tensor y = at::mm(x, p[0]);
               const at::Tensor first = at::empty_like(y).uniform_(0, 1, p.generator);
               at::Generator(p.generator).set_current_seed(8);
               return (y * first).sin() * at::empty_like(y).uniform_(0, 1, p.generator);
             }),
      hazard("a backward that draws random numbers", kSquare,
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor y = NoisyGradient::apply(at::dropout(at::mm(x, p[0]), 0.3, true));
               return at::dropout(y.sin(), 0.2, true);
             }),
      hazard("a kept random op between recomputed random ops", {{16, kDim}, {kDim, 16}},
             [](const at::Tensor& x, const Parts& p) {
               at::Tensor y = at::dropout(at::linear(x, p[0]), 0.3, true);
               y = at::dropout(at::relu(y), 0.3, true);
               return at::dropout(at::linear(y, p[1]), 0.3, true);
             }),
      hazard("a weight scaled by noise without a gradient", kSquare,
             [](const at::Tensor& x, const Parts& p) {
               at::Tensor noise;
               {
                 at::NoGradGuard no_grad;
                 noise = at::randn_like(p[0]) * p[0];
               }
               return at::mm(x, p[0] + noise).sin();
             }),
      hazard("a noisy router that takes the topk of scores with noise", {{kDim, 4}},
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor scores = at::mm(x, p[0]);
               const at::Tensor noisy = scores + at::randn_like(scores) * at::softplus(scores);
               const auto [top, chosen] = at::topk(noisy, 2, 1);
               const at::Tensor gates =
                   at::zeros_like(scores).scatter(1, chosen, at::softmax(top, 1));
               return x * gates.sum(1, true) + at::mm(gates, p[0].t());
             }),
  };
}

}  // namespace

std::vector<Hazard> random_hazards() {
  std::vector<Hazard> all = dropouts();
  for (const auto& more : {distributions(), generators()}) {
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

}  // namespace rematch::testing::hazards
