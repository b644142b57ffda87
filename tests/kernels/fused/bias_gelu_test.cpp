#include "kernels/fused/bias_gelu.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/randn.h>

#include <cmath>

#include "tests/kernels/op_checks.h"
#include "tests/support/catch.h"

namespace rematch::testing {
namespace {

OpCase bias_gelu_case(const at::Tensor& x) {
  return {"bias_gelu",
          [](const Tensors& inputs) { return fused::bias_gelu(inputs[0], inputs[1]); },
          [](const Tensors& inputs) { return at::gelu(inputs[0] + inputs[1], "tanh"); },
          {x.detach().requires_grad_(true), random({x.size(-1)}).requires_grad_(true)},
          /*saved_before=*/2};
}

// Tests widths that are smaller than a vector, fill whole vectors, or leave a remainder. Also tests
// more than kRowsInBlock rows.
TEST_CASE("bias_gelu satisfies the checks of fused ops") {
  for (const auto& sizes :
       std::vector<std::vector<std::int64_t>>{{1}, {3, 7}, {2, 4, 16}, {70, 33}, {2, 50, 96}}) {
    CAPTURE(sizes);
    check_op(bias_gelu_case(random(sizes).mul(2)));
  }
}

TEST_CASE("bias_gelu accepts slices and transposes") {
  check_op(bias_gelu_case(random({6, 40}).narrow(1, 3, 24)));
  check_op(bias_gelu_case(random({24, 6}).t()));
}

TEST_CASE("bias_gelu has the right limits") {
  const auto of = [](double x) {
    const at::Tensor bias = at::full({5}, x / 2);
    return fused::bias_gelu(bias, bias)[4].item<double>();
  };
  CHECK(of(1e4) == 1e4);
  CHECK(std::abs(of(-1e4)) < 1e-30);
  CHECK(of(0) == 0);
}

TEST_CASE("bias_gelu rejects mismatched shapes") {
  CHECK_THROWS_WITH(fused::bias_gelu(at::randn({3, 8}), at::randn({7})),
                    Catch::Contains("the size of x's last dimension") && Catch::Contains("[7]"));
  CHECK_THROWS_WITH(fused::bias_gelu(at::randn({3, 8}), at::randn({8}).to(at::kDouble)),
                    Catch::Contains("x's dtype"));
}

}  // namespace
}  // namespace rematch::testing
