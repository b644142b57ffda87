#include "kernels/fused/layer_norm.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/chunk.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>

#include "tests/kernels/op_checks.h"
#include "tests/support/catch.h"

namespace rematch::testing {
namespace {

constexpr double kLayerNormEps = 1e-6;

// Computes in float32, or in double for double, as models/layers/norm.cpp does.
at::Tensor composed_layer_norm(const Tensors& inputs, double offset) {
  const at::Tensor& x = inputs[0];
  const at::ScalarType wide = x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  const at::Tensor normalised = at::layer_norm(x.to(wide), {x.size(-1)}, {}, {}, kLayerNormEps);
  const at::Tensor result = normalised * (inputs[1].to(wide) + offset) + inputs[2].to(wide);
  return result.to(x.scalar_type());
}

// With has_wide_tables, scale and shift are float32 if x is bfloat16.
OpCase layer_norm_case(const Tensors& inputs, double offset, bool has_wide_tables = false) {
  const auto with_tables = [has_wide_tables](const Tensors& given) {
    Tensors result = given;
    if (has_wide_tables && result[0].scalar_type() == at::kBFloat16) {
      for (const std::size_t table : {1, 2}) result[table] = result[table].to(at::kFloat);
    }
    return result;
  };
  OpCase op{"layer_norm",
            [with_tables, offset](const Tensors& given) {
              const Tensors used = with_tables(given);
              return fused::layer_norm(used[0], used[1], used[2], offset, kLayerNormEps);
            },
            [with_tables, offset](const Tensors& given) {
              return composed_layer_norm(with_tables(given), offset);
            },
            {},
            /*saved_before=*/2};
  for (const at::Tensor& input : inputs) op.inputs.push_back(input.detach().requires_grad_(true));
  return op;
}

// The mean of x is far from 0, so that its subtraction matters.
Tensors inputs_of(std::int64_t batch, std::int64_t tokens, std::int64_t width) {
  return {random({batch, tokens, width}) + 3, random({batch, 1, width}), random({batch, 1, width})};
}

TEST_CASE("layer_norm with adaptive modulation satisfies the checks of fused ops") {
  for (const auto& sizes :
       std::vector<std::vector<std::int64_t>>{{3, 5, 7}, {2, 4, 16}, {2, 70, 33}, {1, 130, 96}}) {
    CAPTURE(sizes);
    check_op(layer_norm_case(inputs_of(sizes[0], sizes[1], sizes[2]), /*offset=*/1));
  }
}

TEST_CASE("layer_norm with weight and bias satisfies the checks of fused ops") {
  check_op(layer_norm_case({random({2, 70, 33}), random({33}), random({33})}, /*offset=*/0));
  check_op(layer_norm_case({random({40, 16}), random({16}), random({16})}, /*offset=*/0));
}

// In Wan scale and shift are float32, and x has the dtype of the model's linears.
TEST_CASE("layer_norm takes float32 tables for bfloat16") {
  for (const std::int64_t width : {21, 96}) {
    const OpCase op = layer_norm_case(inputs_of(2, 40, width), 1, /*has_wide_tables=*/true);
    check_composition(op, at::kBFloat16, 1e-2);
    check_meta(op, at::kBFloat16);
    check_bits(op, at::kBFloat16);
  }
}

TEST_CASE("layer_norm accepts tables that are chunks of a tensor, and a transposed x") {
  const Tensors table = at::chunk(random({3, 6, 24}), 6, /*dim=*/1);
  check_op(layer_norm_case({random({3, 24, 5}).transpose(1, 2), table[1], table[4]}, /*offset=*/1));
}

TEST_CASE("layer_norm keeps its digits if the mean is much larger than the deviation") {
  const at::Tensor x = at::randn({4, 96});
  const at::Tensor one = at::zeros({96});
  const at::Tensor near = fused::layer_norm(x, one, one, 1, kLayerNormEps);
  const at::Tensor far = fused::layer_norm(x + 1000, one, one, 1, kLayerNormEps);
  CHECK((far - near).abs().max().item<float>() < 1e-3);
}

TEST_CASE("layer_norm of an empty tensor is empty, and the gradients of the tables are zero") {
  const at::Tensor x = at::zeros({0, 8}).requires_grad_(true);
  const at::Tensor weight = at::randn({8}).requires_grad_(true);
  const at::Tensor bias = at::randn({8}).requires_grad_(true);
  fused::layer_norm(x, weight, bias, 0, kLayerNormEps).sum().backward();
  CHECK(at::equal(weight.grad(), at::zeros({8})));
  CHECK(at::equal(bias.grad(), at::zeros({8})));
}

TEST_CASE("layer_norm rejects mismatched shapes and dtypes") {
  const at::Tensor x = at::randn({2, 5, 8});
  const at::Tensor table = at::randn({2, 1, 8});
  CHECK_THROWS_WITH(fused::layer_norm(x, table, at::randn({8}), 1, kLayerNormEps),
                    Catch::Contains("[batch, 1, width]"));
  CHECK_THROWS_WITH(fused::layer_norm(x, at::randn({7}), at::randn({7}), 0, kLayerNormEps),
                    Catch::Contains("must be [width]"));
  CHECK_THROWS_WITH(fused::layer_norm(x, table, table.to(at::kDouble), 1, kLayerNormEps),
                    Catch::Contains("x's dtype"));
}

}  // namespace
}  // namespace rematch::testing
