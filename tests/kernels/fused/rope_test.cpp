#include "kernels/fused/rope.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/stack.h>

#include "tests/kernels/op_checks.h"
#include "tests/support/catch.h"

namespace rematch::testing {
namespace {

struct Table {
  at::Tensor cosine, sine;  // float32

  Table on(at::Device device) const { return {cosine.to(device), sine.to(device)}; }
};

Table random_table(std::int64_t tokens, std::int64_t pairs) {
  const at::Tensor angle = at::randn({tokens, 1, pairs}) * 5;
  return {at::cos(angle), at::sin(angle)};
}

// Uses the formula of models/layers/rotary.cpp, for any dtype.
at::Tensor composed_rope(const at::Tensor& x, const Table& table) {
  const at::Tensor wide = x.scalar_type() == at::kDouble ? x : x.to(at::kFloat);
  const at::Tensor pairs =
      wide.reshape({wide.size(0), wide.size(1), wide.size(2), wide.size(3) / 2, 2});
  const at::Tensor even = pairs.select(-1, 0);
  const at::Tensor odd = pairs.select(-1, 1);
  const at::Tensor turned = at::stack(
      {even * table.cosine - odd * table.sine, even * table.sine + odd * table.cosine}, -1);
  return turned.view(x.sizes()).to(x.scalar_type());
}

OpCase rope_case(const at::Tensor& x, const Table& table) {
  return {"rope",
          [table](const Tensors& inputs) {
            const Table there = table.on(inputs[0].device());
            return fused::rope(inputs[0], there.cosine, there.sine);
          },
          [table](const Tensors& inputs) { return composed_rope(inputs[0], table); },
          {x.detach().requires_grad_(true)},
          /*saved_before=*/2};
}

// Tests heads whose pairs fill less than one vector, whole vectors, or whole vectors and a
// remainder. The last case has a single head with all pairs, as in LTX.
TEST_CASE("rope satisfies the checks of fused ops") {
  for (const auto& sizes : std::vector<std::vector<std::int64_t>>{
           {1, 1, 1, 2}, {2, 5, 3, 6}, {1, 7, 2, 16}, {2, 9, 4, 128}, {2, 11, 1, 90}}) {
    CAPTURE(sizes);
    check_op(rope_case(random(sizes), random_table(sizes[1], sizes[3] / 2)));
  }
}

TEST_CASE("rope accepts slices of heads, transposes and expanded heads") {
  check_op(rope_case(random({2, 5, 3, 40}).narrow(3, 24, 16), random_table(5, 8)));
  check_op(rope_case(random({2, 3, 5, 16}).transpose(1, 2), random_table(5, 8)));
}

TEST_CASE("rope preserves lengths and its backward inverts the rotation") {
  const at::Tensor x = at::randn({2, 6, 3, 32}).requires_grad_(true);
  const Table table = random_table(6, 16);
  const at::Tensor turned = fused::rope(x, table.cosine, table.sine);
  CHECK(turned.norm().item<float>() == Approx(x.norm().item<float>()));
  turned.backward(turned.detach());
  CHECK((x.grad() - x).abs().max().item<float>() < 1e-5);
}

TEST_CASE("rope rejects mismatched shapes") {
  const at::Tensor x = at::randn({2, 6, 3, 32});
  const Table table = random_table(6, 16);
  CHECK_THROWS_WITH(fused::rope(x, table.cosine, random_table(5, 16).sine),
                    Catch::Contains("[tokens, 1, head_dim / 2]"));
  CHECK_THROWS_WITH(fused::rope(x, table.cosine.to(at::kDouble), table.sine),
                    Catch::Contains("must be float32"));
  CHECK_THROWS_WITH(fused::rope(x[0], table.cosine, table.sine),
                    Catch::Contains("[batch, tokens, heads, head_dim]"));
}

}  // namespace
}  // namespace rematch::testing
