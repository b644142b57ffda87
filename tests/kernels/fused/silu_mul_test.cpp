#include "kernels/fused/silu_mul.h"

#include <ATen/ops/chunk.h>
#include <ATen/ops/full.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/silu.h>

#include <cmath>

#include "tests/kernels/op_checks.h"
#include "tests/support/catch.h"

namespace rematch::testing {
namespace {

OpCase silu_mul_case(const at::Tensor& gate, const at::Tensor& up) {
  return {"silu_mul",
          [](const Tensors& inputs) { return fused::silu_mul(inputs[0], inputs[1]); },
          [](const Tensors& inputs) { return at::mul(at::silu(inputs[0]), inputs[1]); },
          {gate.detach().requires_grad_(true), up.detach().requires_grad_(true)},
          /*saved_before=*/2};
}

TEST_CASE("silu_mul satisfies the checks of fused ops") {
  for (const auto& sizes :
       std::vector<std::vector<std::int64_t>>{{1}, {3, 7}, {2, 4, 16}, {300, 131}}) {
    CAPTURE(sizes);
    check_op(silu_mul_case(random(sizes).mul(3), random(sizes)));
  }
}

TEST_CASE("silu_mul accepts slices and transposes") {
  check_op(silu_mul_case(random({6, 40}).narrow(1, 3, 24), random({24, 6}).t()));
}

OpCase packed_silu_mul_case(const at::Tensor& x) {
  return {"packed_silu_mul",
          [](const Tensors& inputs) { return fused::packed_silu_mul(inputs[0]); },
          [](const Tensors& inputs) {
            const Tensors halves = at::chunk(inputs[0], 2, -1);
            return at::mul(at::silu(halves[0]), halves[1]);
          },
          {x.detach().requires_grad_(true)},
          /*saved_before=*/1};
}

TEST_CASE("packed_silu_mul satisfies the checks of fused ops") {
  for (const auto& sizes : std::vector<std::vector<std::int64_t>>{{1, 2}, {3, 14}, {300, 262}}) {
    CAPTURE(sizes);
    check_op(packed_silu_mul_case(random(sizes).mul(3)));
  }
  check_op(packed_silu_mul_case(random({24, 6}).t()));
}

TEST_CASE("packed_silu_mul has the bits of silu_mul of the two halves") {
  for (const std::int64_t width : {8, 7, 352}) {
    const at::Tensor x = random({130, 2 * width}).mul(3).to(at::kBFloat16);
    const at::Tensor packed = x.clone().requires_grad_(true);
    const at::Tensor separate = x.clone().requires_grad_(true);
    const Tensors halves = at::chunk(separate, 2, -1);
    const at::Tensor out = fused::packed_silu_mul(packed);
    const at::Tensor expected = fused::silu_mul(halves[0], halves[1]);
    CHECK(out.equal(expected));
    const at::Tensor grad = random({130, width}).to(at::kBFloat16);
    out.backward(grad);
    expected.backward(grad);
    CHECK(packed.grad().equal(separate.grad()));
  }
}

TEST_CASE("packed_silu_mul rejects rows without two halves") {
  CHECK_THROWS_WITH(fused::packed_silu_mul(at::randn({3, 5})),
                    Catch::Contains("x must be [tokens, 2 * width], found [3, 5]"));
}

TEST_CASE("silu_mul has the right limits where the exponential overflows") {
  const auto of = [](double gate) {
    return fused::silu_mul(at::full({5}, gate), at::full({5}, 2.0))[4].item<double>();
  };
  CHECK(of(1e4) == 2e4);
  CHECK(std::abs(of(-1e4)) < 1e-30);
}

TEST_CASE("silu_mul rejects mismatched shapes") {
  CHECK_THROWS_WITH(fused::silu_mul(at::randn({3, 8}), at::randn({8})),
                    Catch::Contains("the same shape and dtype") && Catch::Contains("[3, 8]"));
  CHECK_THROWS_WITH(fused::silu_mul(at::randn({8}), at::randn({8}).to(at::kDouble)),
                    Catch::Contains("the same shape and dtype"));
}

}  // namespace
}  // namespace rematch::testing
