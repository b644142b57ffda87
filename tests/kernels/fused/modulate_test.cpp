#include "kernels/fused/modulate.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/chunk.h>
#include <ATen/ops/randn.h>

#include "tests/kernels/op_checks.h"
#include "tests/support/catch.h"

namespace rematch::testing {
namespace {

// If `narrow` is set and the inputs are float32, the result is bfloat16.
OpCase modulate_case(const Tensors& inputs, bool narrow) {
  const auto dtype = [narrow](const Tensors& given) {
    return narrow && given[0].scalar_type() == at::kFloat ? at::kBFloat16 : given[0].scalar_type();
  };
  OpCase op{"modulate",
            [dtype](const Tensors& given) {
              return fused::modulate(given[0], given[1], given[2], dtype(given));
            },
            [dtype](const Tensors& given) {
              return (given[0] * (given[2] + 1) + given[1]).to(dtype(given));
            },
            {},
            /*saved_before=*/2};
  for (const at::Tensor& input : inputs) op.inputs.push_back(input.detach().requires_grad_(true));
  return op;
}

Tensors random_inputs(std::int64_t batch, std::int64_t tokens, std::int64_t width) {
  return {random({batch, tokens, width}), random({batch, 1, width}), random({batch, 1, width})};
}

TEST_CASE("modulate satisfies the checks of fused ops") {
  for (const auto& sizes : std::vector<std::vector<std::int64_t>>{
           {1, 1, 1}, {3, 5, 7}, {2, 4, 16}, {2, 70, 33}, {1, 130, 96}}) {
    CAPTURE(sizes);
    check_op(modulate_case(random_inputs(sizes[0], sizes[1], sizes[2]), /*narrow=*/false));
  }
}

// In Wan all inputs are float32, and the result has the dtype of the model's linears.
TEST_CASE("modulate rounds float32 to bfloat16") {
  const OpCase op = modulate_case(random_inputs(2, 40, 21), /*narrow=*/true);
  check_one_op(op);
  check_composition(op, at::kFloat, 1e-2);
  check_meta(op, at::kFloat);
  check_bits(op, at::kFloat);
}

TEST_CASE("modulate accepts tables that are chunks of a tensor, and a transposed x") {
  const Tensors table = at::chunk(random({3, 6, 24}), 6, /*dim=*/1);
  check_op(
      modulate_case({random({3, 24, 5}).transpose(1, 2), table[1], table[4]}, /*narrow=*/false));
}

TEST_CASE("modulate rejects mismatched shapes") {
  const at::Tensor x = at::randn({2, 5, 8});
  const at::Tensor table = at::randn({2, 1, 8});
  CHECK_THROWS_WITH(fused::modulate(x, table, at::randn({2, 5, 8}), at::kFloat),
                    Catch::Contains("[batch, 1, width]"));
  CHECK_THROWS_WITH(fused::modulate(x, table, table.to(at::kBFloat16), at::kFloat),
                    Catch::Contains("the same dtype"));
  CHECK_THROWS_WITH(fused::modulate(x, table, table, at::kDouble), Catch::Contains("x's dtype"));
}

}  // namespace
}  // namespace rematch::testing
