#include "kernels/fused/gated_add.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/chunk.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/randn.h>
#include <torch/csrc/autograd/autograd.h>

#include "tests/kernels/op_checks.h"
#include "tests/support/catch.h"

namespace rematch::testing {
namespace {

// Computes in the dtype of the gate, as models/families/dit.cpp does.
at::Tensor composed_gated_add(const Tensors& inputs) {
  const at::ScalarType wide = inputs[2].scalar_type();
  const at::Tensor sum = inputs[0].to(wide) + inputs[1].to(wide) * inputs[2];
  return sum.to(inputs[0].scalar_type());
}

// With has_wide_gate, the gate is float32 if x is bfloat16.
OpCase gated_add_case(const Tensors& inputs, bool has_wide_gate) {
  const auto with_gate = [has_wide_gate](const Tensors& given) {
    Tensors result = given;
    if (has_wide_gate && result[0].scalar_type() == at::kBFloat16) {
      result[2] = result[2].to(at::kFloat);
    }
    return result;
  };
  OpCase op{"gated_add",
            [with_gate](const Tensors& given) {
              const Tensors used = with_gate(given);
              return fused::gated_add(used[0], used[1], used[2]);
            },
            [with_gate](const Tensors& given) { return composed_gated_add(with_gate(given)); },
            {},
            /*saved_before=*/2};
  for (const at::Tensor& input : inputs) op.inputs.push_back(input.detach().requires_grad_(true));
  return op;
}

Tensors gated_inputs(std::int64_t batch, std::int64_t tokens, std::int64_t width) {
  return {random({batch, tokens, width}), random({batch, tokens, width}),
          random({batch, 1, width})};
}

TEST_CASE("gated_add satisfies the checks of fused ops") {
  for (const auto& sizes : std::vector<std::vector<std::int64_t>>{
           {1, 1, 1}, {3, 5, 7}, {2, 4, 16}, {2, 70, 33}, {1, 130, 96}}) {
    CAPTURE(sizes);
    check_op(gated_add_case(gated_inputs(sizes[0], sizes[1], sizes[2]), /*has_wide_gate=*/false));
  }
}

// In Wan the gate is float32, and x and branch have the dtype of the model's linears.
TEST_CASE("gated_add multiplies bfloat16 by a float32 gate and rounds once") {
  for (const std::int64_t width : {21, 96}) {
    const OpCase op = gated_add_case(gated_inputs(2, 40, width), /*has_wide_gate=*/true);
    check_composition(op, at::kBFloat16, 1e-2);
    check_meta(op, at::kBFloat16);
    check_bits(op, at::kBFloat16);
    Tensors inputs;
    for (const at::Tensor& input : op.inputs) inputs.push_back(input.detach().to(at::kBFloat16));
    inputs[2] = inputs[2].to(at::kFloat);
    CHECK(at::equal(op.fused(inputs).tensors[0], composed_gated_add(inputs)));
  }
}

TEST_CASE("gated_add accepts gates that are chunks of a tensor, and a transposed x and branch") {
  const Tensors table = at::chunk(random({3, 6, 24}), 6, /*dim=*/1);
  check_op(gated_add_case(
      {random({3, 24, 5}).transpose(1, 2), random({3, 24, 5}).transpose(1, 2), table[2]},
      /*has_wide_gate=*/false));
}

TEST_CASE("gated_add passes the gradient of its result to x") {
  const at::Tensor x = at::randn({2, 3, 8}).requires_grad_(true);
  const at::Tensor out = fused::gated_add(x, at::randn({2, 3, 8}), at::randn({2, 1, 8}));
  const at::Tensor gradient = at::randn({2, 3, 8});
  CHECK(torch::autograd::grad({out}, {x}, {gradient})[0].is_alias_of(gradient));
}

TEST_CASE("gated_add rejects mismatched shapes and dtypes") {
  const at::Tensor x = at::randn({2, 5, 8});
  const at::Tensor gate = at::randn({2, 1, 8});
  CHECK_THROWS_WITH(fused::gated_add(x, x, at::randn({2, 5, 8})),
                    Catch::Contains("[batch, 1, width]"));
  CHECK_THROWS_WITH(fused::gated_add(x, x.to(at::kBFloat16), gate),
                    Catch::Contains("x and branch must have the same dtype"));
  CHECK_THROWS_WITH(fused::gated_add(x, x, gate.to(at::kBFloat16)), Catch::Contains("x's dtype"));
}

}  // namespace
}  // namespace rematch::testing
