#include "kernels/fused/rms_norm.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/zeros.h>

#include <torch/csrc/autograd/autograd.h>

#include "tests/kernels/op_checks.h"
#include "tests/support/catch.h"

namespace rematch::testing {
namespace {

constexpr double kEps = 1e-5;

// Computes statistics in float32, or in double for double, as models/layers/norm.cpp does.
at::Tensor composed_rms_norm(const Tensors& inputs) {
  const at::Tensor& x = inputs[0];
  const at::Tensor wide = x.scalar_type() == at::kDouble ? x : x.to(at::kFloat);
  const at::Tensor rms = at::rsqrt(at::mean(at::pow(wide, 2), /*dim=*/-1, /*keepdim=*/true) + kEps);
  const at::Tensor normalised = at::mul(wide, rms).to(x.scalar_type());
  return inputs[1].defined() ? at::mul(normalised, inputs[1]) : normalised;
}

OpCase rms_norm_case(at::Tensor x, bool has_weight) {
  const auto options = at::TensorOptions().dtype(at::kDouble);
  at::Tensor weight;
  if (has_weight) weight = at::randn({x.size(-1)}, options).requires_grad_(true);
  return {"rms_norm",
          [](const Tensors& inputs) { return fused::rms_norm(inputs[0], inputs[1], kEps); },
          composed_rms_norm,
          {x.detach().requires_grad_(true), weight},
          /*saved_before=*/has_weight ? 2 : 1};
}

// Tests widths that are smaller than a vector, fill whole vectors, or leave a remainder. Also tests
// more than kRowsInBlock rows.
TEST_CASE("rms_norm satisfies the checks of fused ops") {
  for (const auto& sizes : std::vector<std::vector<std::int64_t>>{
           {1}, {5, 1}, {3, 7}, {2, 4, 16}, {70, 33}, {2, 50, 96}}) {
    for (const bool has_weight : {true, false}) {
      CAPTURE(sizes, has_weight);
      check_op(rms_norm_case(random(sizes), has_weight));
    }
  }
}

TEST_CASE("rms_norm accepts slices and transposes") {
  check_op(rms_norm_case(random({6, 40}).narrow(1, 3, 24), true));
  check_op(rms_norm_case(random({24, 6}).t(), true));
}

// Returns the norm and the sum.
OpCase add_rms_norm_case(const at::Tensor& x, const at::Tensor& branch) {
  const at::Tensor weight = random({x.size(-1)});
  return {"add_rms_norm",
          [](const Tensors& inputs) {
            const auto [norm, sum] = fused::add_rms_norm(inputs[0], inputs[1], inputs[2], kEps);
            return Tensors{norm, sum};
          },
          [](const Tensors& inputs) {
            const at::Tensor sum = inputs[0] + inputs[1];
            return Tensors{composed_rms_norm({sum, inputs[2]}), sum};
          },
          {x.detach().requires_grad_(true), branch.detach().requires_grad_(true),
           weight.requires_grad_(true)},
          /*saved_before=*/1,
          /*saved_after=*/1};
}

TEST_CASE("add_rms_norm satisfies the checks of fused ops") {
  for (const auto& sizes :
       std::vector<std::vector<std::int64_t>>{{5, 1}, {3, 7}, {2, 4, 16}, {70, 33}, {2, 50, 96}}) {
    CAPTURE(sizes);
    check_op(add_rms_norm_case(random(sizes), random(sizes)));
  }
  check_op(add_rms_norm_case(random({6, 40}).narrow(1, 3, 24), random({24, 6}).t()));
}

TEST_CASE("add_rms_norm has the bits of an add followed by rms_norm") {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16, at::kDouble}) {
    for (const std::int64_t width : {33, 96}) {
      const at::Tensor x = random({70, width}).to(dtype);
      const at::Tensor branch = random({70, width}).to(dtype);
      const at::Tensor weight = random({width}).to(dtype);
      const auto [norm, sum] = fused::add_rms_norm(x, branch, weight, kEps);
      CHECK(at::equal(sum, x + branch));
      CHECK(at::equal(norm, fused::rms_norm(x + branch, weight, kEps)));
    }
  }
}

// A model may use only one of the results.
TEST_CASE("add_rms_norm has the right gradients if only one result is used") {
  const auto leaf = [](at::IntArrayRef sizes) { return random(sizes).requires_grad_(true); };
  const at::Tensor x = leaf({5, 24}), branch = leaf({5, 24}), weight = leaf({24});
  const at::Tensor gradient = random({5, 24});
  const auto [norm, sum] = fused::add_rms_norm(x, branch, weight, kEps);
  const Tensors of_norm = torch::autograd::grad({norm}, {x, branch, weight}, {gradient}, true);
  const Tensors expected = torch::autograd::grad({composed_rms_norm({x + branch, weight})},
                                                 {x, branch, weight}, {gradient});
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CHECK((of_norm[i] - expected[i]).abs().max().item<double>() < 1e-12);
  }
  const Tensors of_sum = torch::autograd::grad({sum}, {x, branch, weight}, {gradient},
                                               /*retain_graph=*/false, /*create_graph=*/false,
                                               /*allow_unused=*/true);
  CHECK(at::equal(of_sum[0], gradient));
  CHECK(at::equal(of_sum[1], gradient));
  CHECK_FALSE(of_sum[2].defined());
}

TEST_CASE("rms_norm of an empty tensor is empty, and the gradient of the weight is zero") {
  const at::Tensor x = at::zeros({0, 8}).requires_grad_(true);
  const at::Tensor weight = at::randn({8}).requires_grad_(true);
  fused::rms_norm(x, weight, kEps).sum().backward();
  CHECK(at::equal(weight.grad(), at::zeros({8})));
}

TEST_CASE("rms_norm rejects mismatched shapes") {
  const at::Tensor x = at::randn({3, 8});
  CHECK_THROWS_WITH(fused::rms_norm(x, at::randn({7}), kEps), Catch::Contains("must be [8]"));
  CHECK_THROWS_WITH(fused::rms_norm(x, at::randn({8}).to(at::kDouble), kEps),
                    Catch::Contains("the same dtype"));
  CHECK_THROWS_WITH(fused::rms_norm(x.to(at::kLong), at::Tensor(), kEps),
                    Catch::Contains("takes float32, bfloat16 or float64"));
  CHECK_THROWS_WITH(fused::add_rms_norm(x, at::randn({8}), at::randn({8}), kEps),
                    Catch::Contains("x and branch must have the same shape"));
}

}  // namespace
}  // namespace rematch::testing
