#include "models/layers/norm.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/rms_norm.h>

#include "tests/support/catch.h"

using namespace rematch;

TEST_CASE("rms_norm agrees with LibTorch's rms_norm in double") {
  for (const std::int64_t width : {1, 7, 64}) {
    const at::Tensor x = at::randn({5, 3, width});
    const at::Tensor weight = at::randn({width});
    const at::Tensor expected =
        at::rms_norm(x.to(at::kDouble), {width}, weight.to(at::kDouble), 1e-5);
    CHECK(at::allclose(rms_norm(x, weight, 1e-5).to(at::kDouble), expected, 1e-5, 1e-6));
  }
}

TEST_CASE("rms_norm of bfloat16 has float32 statistics and a bfloat16 result") {
  const at::Tensor x = (at::randn({4, 512}) * 100).to(at::kBFloat16);
  const at::Tensor weight = at::randn({512}).to(at::kBFloat16);
  const at::Tensor out = rms_norm(x, weight, 1e-5);
  CHECK(out.scalar_type() == at::kBFloat16);
  // The norm rounds before and after the product with the weight. Each rounding is an error of
  // 2^-8.
  const at::Tensor expected = at::rms_norm(x.to(at::kDouble), {512}, weight.to(at::kDouble), 1e-5);
  CHECK(at::allclose(out.to(at::kDouble), expected, 1.01 * 0x1p-7, 1e-6));
}

TEST_CASE("layer_norm_float32 agrees with LibTorch's layer_norm, with and without weights") {
  const at::Tensor x = at::randn({2, 6, 33});
  const at::Tensor weight = at::randn({33});
  const at::Tensor bias = at::randn({33});
  CHECK(
      layer_norm_float32(x, weight, bias, 1e-6).equal(at::layer_norm(x, {33}, weight, bias, 1e-6)));
  CHECK(layer_norm_float32(x, at::Tensor(), at::Tensor(), 1e-6)
            .equal(at::layer_norm(x, {33}, {}, {}, 1e-6)));
  const at::Tensor narrow = x.to(at::kBFloat16);
  const at::Tensor out =
      layer_norm_float32(narrow, weight.to(at::kBFloat16), bias.to(at::kBFloat16), 1e-6);
  CHECK(out.scalar_type() == at::kFloat);
}
