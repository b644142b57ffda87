#include "kernels/fused/rms_norm.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/zeros.h>

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
}

}  // namespace
}  // namespace rematch::testing
