#include "kernels/fused/rms_norm_rope.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/stack.h>

#include "kernels/fused/rms_norm.h"
#include "kernels/fused/rope.h"
#include "tests/kernels/op_checks.h"
#include "tests/support/catch.h"

namespace rematch::testing {
namespace {

constexpr double kNormEps = 1e-6;

// Angles of the tokens and pairs.
at::Tensor random_angles(std::int64_t tokens, std::int64_t pairs) {
  return at::randn({tokens, 1, pairs}) * 5;
}

// Uses the formulas of models/layers/norm.cpp and rotary.cpp, for any dtype.
at::Tensor composed_norm_and_rope(const Tensors& inputs, const at::Tensor& angles) {
  const at::Tensor& x = inputs[0];
  const at::Tensor wide = x.scalar_type() == at::kDouble ? x : x.to(at::kFloat);
  const at::Tensor rms =
      at::rsqrt(at::mean(at::pow(wide, 2), /*dim=*/-1, /*keepdim=*/true) + kNormEps);
  at::Tensor norm = at::mul(at::mul(wide, rms).to(x.scalar_type()), inputs[1]);
  norm = norm.to(wide.scalar_type());
  const std::int64_t heads = x.size(2) / (2 * angles.size(2));
  const at::Tensor pairs = norm.reshape({x.size(0), x.size(1), heads, angles.size(2), 2});
  const at::Tensor even = pairs.select(-1, 0);
  const at::Tensor odd = pairs.select(-1, 1);
  const at::Tensor cosine = at::cos(angles);
  const at::Tensor sine = at::sin(angles);
  const at::Tensor turned = at::stack({even * cosine - odd * sine, even * sine + odd * cosine}, -1);
  return turned.view(x.sizes()).to(x.scalar_type());
}

OpCase rms_norm_rope_case(const at::Tensor& x, const at::Tensor& angles) {
  return {"rms_norm_rope",
          [cosine = at::cos(angles), sine = at::sin(angles)](const Tensors& inputs) {
            const at::Device device = inputs[0].device();
            return fused::rms_norm_rope(inputs[0], inputs[1], cosine.to(device), sine.to(device),
                                        kNormEps);
          },
          [angles](const Tensors& inputs) { return composed_norm_and_rope(inputs, angles); },
          {x.detach().requires_grad_(true), random({x.size(2)}).requires_grad_(true)},
          /*saved_before=*/4};
}

// Tests heads whose pairs fill less than one vector, whole vectors, or whole vectors and a
// remainder. Also tests more than kRowsInBlock rows. In the last case one head has all pairs, as in
// LTX.
TEST_CASE("rms_norm_rope satisfies the checks of fused ops") {
  struct Sizes {
    std::int64_t batch, tokens, heads, pairs;
  };
  for (const Sizes& sizes : std::vector<Sizes>{
           {1, 1, 1, 1}, {2, 5, 3, 3}, {1, 7, 2, 8}, {2, 20, 4, 64}, {2, 11, 1, 45}}) {
    CAPTURE(sizes.tokens, sizes.heads, sizes.pairs);
    check_op(rms_norm_rope_case(random({sizes.batch, sizes.tokens, sizes.heads * 2 * sizes.pairs}),
                                random_angles(sizes.tokens, sizes.pairs)));
  }
}

TEST_CASE("rms_norm_rope accepts a part of a packed projection, and transposes") {
  check_op(rms_norm_rope_case(random({2, 5, 72}).narrow(2, 24, 24), random_angles(5, 4)));
  check_op(rms_norm_rope_case(random({5, 2, 24}).transpose(0, 1), random_angles(5, 4)));
}

// In double nothing is rounded between norm and rotation. Only the order of additions may differ.
TEST_CASE("rms_norm_rope equals rms_norm followed by rope") {
  const at::Tensor x = random({2, 9, 48});
  const at::Tensor weight = random({48});
  const at::Tensor angles = random_angles(9, 8);
  const at::Tensor found =
      fused::rms_norm_rope(x, weight, at::cos(angles), at::sin(angles), kNormEps);
  const at::Tensor norm = fused::rms_norm(x, weight, kNormEps).view({2, 9, 3, 16});
  const at::Tensor expected = fused::rope(norm, at::cos(angles), at::sin(angles)).view({2, 9, 48});
  CHECK((found - expected).abs().max().item<double>() < 1e-14);
}

TEST_CASE("rms_norm_rope rejects mismatched shapes") {
  const at::Tensor x = at::randn({2, 6, 96});
  const at::Tensor weight = at::randn({96});
  const at::Tensor table = at::randn({6, 1, 16});
  const auto run = [&](const at::Tensor& a, const at::Tensor& b, const at::Tensor& c) {
    return fused::rms_norm_rope(a, b, c, c, kNormEps);
  };
  CHECK_THROWS_WITH(run(x[0], weight, table), Catch::Contains("[batch, tokens, width]"));
  CHECK_THROWS_WITH(run(x, at::randn({95}), table), Catch::Contains("the weight must be [96]"));
  CHECK_THROWS_WITH(run(x, weight, at::randn({6, 1, 20})),
                    Catch::Contains("must divide x's width"));
  CHECK_THROWS_WITH(run(x, weight, at::randn({5, 1, 16})), Catch::Contains("[tokens, 1, head_dim"));
}

}  // namespace
}  // namespace rematch::testing
