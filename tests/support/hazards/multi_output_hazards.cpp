// Decompositions, reductions, losses and activations. Also ops with several outputs of which
// backward needs only some. The backward formulas use saved results, inputs or intermediate values.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include "tests/support/hazards/hazard.h"

namespace rematch::testing::hazards {
namespace {

Hazard applied(const std::string& name, const std::function<at::Tensor(const at::Tensor&)>& op,
               const Options& options = {}) {
  return hazard(
      name, kSquare, [op](const at::Tensor& x, const Parts& p) { return op(at::mm(x, p[0])); },
      options);
}

// Returns a matrix far from singular, for decompositions.
at::Tensor regular(const at::Tensor& y) {
  return at::mm(y.t(), y) + at::eye(kDim, y.options()) * 2 +
         at::diag(at::arange(kDim, y.options()));
}

std::vector<Hazard> several_outputs() {
  return {
      applied("sort, topk, kthvalue, mode, median, msort",
              [](const at::Tensor& y) {
                const auto [sorted, order] = at::sort(y, 1, true);
                const auto [top, where] = at::topk(y, 3, 1);
                return sorted * at::gather(y, 1, order.flip(1)) + top.sum(1, true) +
                       std::get<0>(at::kthvalue(y, 2, 1, true)) +
                       std::get<0>(at::mode(y, 1, true)) + std::get<0>(at::median(y, 1, true)) +
                       at::msort(y);
              }),
      applied("max, min, aminmax, cummax, cummin",
              [](const at::Tensor& y) {
                const auto [least, most] = at::aminmax(y.detach(), 1, true);
                return std::get<0>(at::max(y, 1, true)) * std::get<0>(at::min(y, 0, true)) +
                       least * most + std::get<0>(at::cummax(y, 0)) +
                       std::get<0>(at::cummin(y, 1)) + y.amax(1, true);
              }),
      applied("var_mean and std_mean with one unused output",
              [](const at::Tensor& y) {
                const auto [variance, mean] = at::var_mean(y, {1}, true, true);
                const auto [deviation, unused] = at::std_mean(y, {0}, true, true);
                return (y - mean) / (variance + 1).sqrt() + y / (deviation + 1);
              }),
      applied("unique, bincount, histogram and searchsorted",
              [](const at::Tensor& y) {
                const auto [values, inverse, counts] =
                    at::_unique2(at::round(y.detach() * 2), true, true, true);
                const at::Tensor bounds = at::linspace(-1, 1, 4);
                const at::Tensor bins = at::bucketize(y.detach(), bounds);
                return y * values.index({inverse}) + y.sin() * bins +
                       at::bincount(bins.flatten(), {}, 5).to(at::kFloat).sum() * y;
              }),
      applied("frexp, ldexp, split_with_sizes, unsafe_chunk",
              [](const at::Tensor& y) {
                const auto [mantissa, exponent] = at::frexp(y.detach());
                const auto parts = at::split_with_sizes(y, {3, 5}, 1);
                const auto halves = at::unsafe_chunk(y.sin(), 2, 1);
                return y * mantissa + at::ldexp(y, exponent) +
                       at::cat({parts[1], parts[0]}, 1) * halves[0].sum();
              }),
      applied("ops over lists of tensors, out of place",
              [](const at::Tensor& y) {
                const auto scaled = at::_foreach_mul({y, y.sin()}, 2.0);
                const auto sums = at::_foreach_add(scaled, {y.cos(), y}, 0.5);
                return sums[0] * sums[1] + at::cat({y, y}).slice(0, 3, 9) +
                       at::stack({y, y.sin()}).prod(0);
              }),
  };
}

std::vector<Hazard> decompositions() {
  return {
      applied("QR and singular values",
              [](const at::Tensor& y) {
                const auto [q, r] = at::linalg_qr(regular(y));
                const auto [u, s, v] = at::linalg_svd(regular(y), false);
                return at::mm(y, q) + y * s + y * r.diagonal();
              }),
      applied("eigenvalues, Cholesky, determinants",
              [](const at::Tensor& y) {
                const at::Tensor a = regular(y);
                const auto [sign, logarithm] = at::linalg_slogdet(a);
                return at::mm(y, at::linalg_cholesky(a)) * 0.1 + y * at::linalg_eigvalsh(a) +
                       y * logarithm * sign;
              }),
      applied("solve, inverse, triangular solve, hand-written lstsq",
              [](const at::Tensor& y) {
                const at::Tensor a = regular(y);
                const at::Tensor lower = at::tril(a);
                return at::linalg_solve(a, y.t()).t() + at::mm(y, at::linalg_inv(a)) +
                       at::linalg_solve_triangular(lower, y.t(), false).t();
              }),
      applied("matrix exponential and powers",
              [](const at::Tensor& y) {
                const at::Tensor a = regular(y) * 0.05;
                return at::mm(y, at::linalg_matrix_exp(a)) + at::mm(y, at::matrix_power(a, 3));
              }),
  };
}

std::vector<Hazard> reductions() {
  return {
      applied("activations that save their result",
              [](const at::Tensor& y) {
                return at::sigmoid(y) * at::tanh(y) + at::exp(y) + at::sqrt(y.abs() + 1) +
                       at::softmax(y, 1) + at::log_softmax(y, 0) + at::elu(y) + at::celu(y) +
                       at::reciprocal(y.abs() + 1);
              }),
      applied("activations that save their input",
              [](const at::Tensor& y) {
                return at::gelu(y) + at::silu(y) + at::mish(y) + at::hardswish(y) +
                       at::softplus(y) + at::leaky_relu(y, 0.1) + at::hardsigmoid(y) +
                       at::softshrink(y, 0.1) + at::relu6(y) + at::selu(y);
              }),
      applied("log sigmoid, which saves its own buffer",
              [](const at::Tensor& y) { return at::log_sigmoid(y) * at::log_sigmoid(y.neg()); }),
      hazard("prelu and glu", {{kDim, 16}, {16}},
             [](const at::Tensor& x, const Parts& p) {
               return at::glu(at::prelu(at::mm(x, p[0]), p[1]), 1);
             }),
      applied("products, norms, logsumexp, cdist, pdist",
              [](const at::Tensor& y) {
                return y * y.prod() + at::linalg_vector_norm(y, 3, {1}, true) +
                       at::logsumexp(y, 0, true) + at::cdist(y, y.sin()).sum(1, true) +
                       at::pdist(y).sum() + at::norm(y, 1, {0}, true);
              }),
      applied("several loss functions in succession",
              [](const at::Tensor& y) {
                const at::Tensor target = at::sigmoid(y.detach());
                const at::Tensor classes = indices(kTokens, kDim);
                const at::Tensor loss =
                    at::cross_entropy_loss(y, classes, {}, at::Reduction::Mean, -100, 0.1) +
                    at::mse_loss(y, target) + at::l1_loss(y, target) + at::huber_loss(y, target) +
                    at::smooth_l1_loss(y, target) +
                    at::binary_cross_entropy_with_logits(y, target) +
                    at::kl_div(at::log_softmax(y, 1), at::softmax(target, 1)) +
                    at::nll_loss(at::log_softmax(y, 1), classes, {}, at::Reduction::Mean, 2);
                return y * loss;
              }),
      applied("margin, cosine and hinge losses",
              [](const at::Tensor& y) {
                const at::Tensor sign = y.detach().sign();
                const at::Tensor loss = at::soft_margin_loss(y, sign) +
                                        at::hinge_embedding_loss(y, sign) +
                                        at::triplet_margin_loss(y, y.sin(), y.cos()) +
                                        at::multi_margin_loss(y, indices(kTokens, kDim));
                return y * loss + at::cosine_similarity(y, y.sin(), 1).unsqueeze(1);
              }),
      applied("connectionist temporal classification",
              [](const at::Tensor& y) {
                const at::Tensor log_probs = at::log_softmax(y, 1).unsqueeze(1);
                const at::Tensor targets = at::tensor({1, 2, 3}).view({1, 3});
                return y * at::ctc_loss(log_probs, targets, at::IntArrayRef{kTokens},
                                        at::IntArrayRef{3});
              }),
      applied("constants from every factory",
              [](const at::Tensor& y) {
                const at::Tensor c = at::arange(kDim, y.options()) + at::linspace(0, 1, kDim) +
                                     at::full({kDim}, 0.5) + at::scalar_tensor(2.0) +
                                     at::tensor({0.5F}) + y.new_ones({kDim}) + at::eye(kDim)[1] +
                                     at::zeros_like(y) + at::full_like(y, 0.1) +
                                     at::tril_indices(2, 2).sum();
                return y * c + at::hann_window(kDim) * y.new_full({1}, 2.0);
              }),
  };
}

}  // namespace

std::vector<Hazard> multi_output_hazards() {
  std::vector<Hazard> all = several_outputs();
  for (const auto& more : {decompositions(), reductions()}) {
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

}  // namespace rematch::testing::hazards
