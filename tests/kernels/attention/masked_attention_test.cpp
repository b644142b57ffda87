#include "kernels/attention/attention.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/randn.h>

#include "tests/kernels/composed_attention.h"
#include "tests/kernels/op_checks.h"
#include "tests/support/catch.h"

namespace rematch::testing {
namespace {

at::Tensor random(at::IntArrayRef sizes) {
  return at::randn(sizes, at::TensorOptions().dtype(at::kDouble));
}

// Makes q_BHSD from a tensor [batch, tokens, heads, head_dim], as the models do.
at::Tensor input(std::int64_t batch, std::int64_t heads, std::int64_t tokens, std::int64_t dim) {
  return random({batch, tokens, heads, dim}).transpose(1, 2).detach().requires_grad_(true);
}

void check_masked(bool same_bits_for_any_threads) {
  for (const auto& mask_sizes :
       std::vector<std::vector<std::int64_t>>{{2, 1, 1, 5}, {1, 3, 7, 5}, {2, 3, 7, 5}}) {
    CAPTURE(mask_sizes);
    check_op({"masked_attention",
              [](const Tensors& inputs) {
                return std::get<0>(masked_attention(inputs[0], inputs[1], inputs[2], inputs[3]));
              },
              [](const Tensors& inputs) {
                return composed_attention(inputs[0], inputs[1], inputs[2], inputs[3]);
              },
              {input(2, 3, 7, 10), input(2, 3, 5, 10), input(2, 3, 5, 10), random(mask_sizes)},
              /*saved_before=*/4,
              /*saved_after=*/2,
              same_bits_for_any_threads});
  }
}

TEST_CASE("masked attention satisfies the checks of fused ops") { check_masked(true); }

TEST_CASE("masked attention composed from ATen ops satisfies the checks of fused ops") {
  const WithBackend math(AttentionBackend::kMath);
  check_masked(false);
}

TEST_CASE("a masked key has no gradient and no influence") {
  const at::Tensor q = input(1, 2, 4, 8);
  const at::Tensor k = input(1, 2, 3, 8);
  const at::Tensor v = input(1, 2, 3, 8);
  at::Tensor mask = random({1, 1, 1, 3}).zero_();
  mask.select(3, 1).fill_(-1e30);
  const at::Tensor out = std::get<0>(masked_attention(q, k, v, mask));
  out.sum().backward();
  CHECK(k.grad().select(2, 1).abs().max().item<double>() == 0);
  CHECK(v.grad().select(2, 1).abs().max().item<double>() == 0);
  k.detach().select(2, 1).mul_(-3);
  CHECK(at::equal(std::get<0>(masked_attention(q, k, v, mask)), out));
}

TEST_CASE("masked attention rejects mismatched shapes") {
  const at::Tensor q = at::randn({1, 4, 8, 16});
  const at::Tensor mask = at::randn({1, 1, 1, 8});
  CHECK_THROWS_WITH(masked_attention(q, q, q, at::randn({1, 1, 1, 7})),
                    Catch::Contains("[batch, heads, queries, keys]"));
  CHECK_THROWS_WITH(masked_attention(q, q, q, mask.to(at::kDouble)),
                    Catch::Contains("the same dtype"));
  const at::Tensor narrow = at::randn({1, 2, 8, 16});
  CHECK_THROWS_WITH(masked_attention(q, narrow, narrow, mask),
                    Catch::Contains("and q's batch, heads"));
  CHECK_THROWS_WITH(masked_attention(q, q, q, mask.detach().requires_grad_(true)),
                    Catch::Contains("the mask gets no gradient"));
}

}  // namespace
}  // namespace rematch::testing
