#include "kernels/fused/linear_cross_entropy.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>

#include "harness/measure/memory.h"
#include "tests/kernels/op_checks.h"
#include "tests/support/catch.h"

namespace rematch::testing {
namespace {

at::Tensor fused_loss(const Tensors& inputs) {
  return fused::linear_cross_entropy(inputs[0], inputs[1], inputs[2]);
}

at::Tensor composed_linear_cross_entropy(const Tensors& inputs) {
  at::Tensor logits = at::linear(inputs[0], inputs[1]);
  if (logits.scalar_type() == at::kBFloat16) logits = logits.to(at::kFloat);
  return at::cross_entropy_loss(logits, inputs[2]);
}

OpCase linear_cross_entropy_case(std::int64_t tokens, std::int64_t width, std::int64_t classes) {
  const auto options = at::TensorOptions().dtype(at::kDouble);
  const at::Tensor x = at::randn({tokens, width}, options);
  const at::Tensor weight = at::randn({classes, width}, options);
  const at::Tensor target = at::randint(classes, {tokens}, at::TensorOptions().dtype(at::kLong));
  return {"linear_cross_entropy",
          fused_loss,
          composed_linear_cross_entropy,
          {x.requires_grad_(true), weight.requires_grad_(true), target},
          /*saved_before=*/3,
          /*saved_after=*/1,
          /*same_bits_for_any_threads=*/false};
}

// Tests one class, one chunk, and several chunks with a remainder. A chunk has at least 256
// classes.
TEST_CASE("linear_cross_entropy satisfies the checks of fused ops") {
  for (const auto& sizes :
       std::vector<std::vector<std::int64_t>>{{1, 1, 1}, {5, 3, 7}, {9, 16, 300}, {2100, 4, 600}}) {
    CAPTURE(sizes);
    check_op(linear_cross_entropy_case(sizes[0], sizes[1], sizes[2]));
  }
}

TEST_CASE("linear_cross_entropy with kept logits satisfies the checks of fused ops") {
  for (const auto& sizes :
       std::vector<std::vector<std::int64_t>>{{1, 1, 1}, {5, 3, 7}, {9, 16, 300}, {2100, 4, 600}}) {
    CAPTURE(sizes);
    OpCase kept = linear_cross_entropy_case(sizes[0], sizes[1], sizes[2]);
    kept.name = "linear_cross_entropy_with_logits";
    kept.fused = [](const Tensors& inputs) {
      return fused::linear_cross_entropy(inputs[0], inputs[1], inputs[2], fused::Logits::kKept);
    };
    kept.saved_after = 2;  // the logsumexp and the logits
    check_op(kept);
  }
}

// 2100 tokens and 600 classes are three chunks on the CPU.
TEST_CASE("kept logits give the bits of logits that are computed again") {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    const at::Tensor x = at::randn({2100, 16}).to(dtype);
    const at::Tensor weight = at::randn({600, 16}).to(dtype);
    const at::Tensor target = at::randint(600, {2100}, at::TensorOptions().dtype(at::kLong));
    std::vector<Tensors> results;
    for (const auto logits : {fused::Logits::kRecomputed, fused::Logits::kKept}) {
      const at::Tensor its_x = x.clone().requires_grad_(true);
      const at::Tensor its_weight = weight.clone().requires_grad_(true);
      const at::Tensor loss = fused::linear_cross_entropy(its_x, its_weight, target, logits);
      loss.backward({}, /*retain_graph=*/true);
      const at::Tensor once = its_x.grad().clone();
      its_x.mutable_grad().reset();
      loss.backward();
      CHECK(its_x.grad().equal(once));  // backward leaves the kept logits as they are
      results.push_back({loss.detach(), its_x.grad(), its_weight.grad()});
    }
    CHECK(results[0][0].equal(results[1][0]));
    CHECK(results[0][1].equal(results[1][1]));
    CHECK(results[0][2].equal(results[1][2]));
  }
}

// 524,288 logits are one chunk on the CPU. The last two weights have 16,384,000 elements, four
// times as many as 256 x 16,000 logits.
TEST_CASE("logits of at most one chunk, or of at most a quarter of the weight's size, are kept") {
  const auto chosen = [](std::int64_t tokens, std::int64_t width, std::int64_t classes) {
    return fused::logits_for(at::empty({tokens, width}), at::empty({classes, width}));
  };
  CHECK(chosen(1024, 8, 512) == fused::Logits::kKept);
  CHECK(chosen(1024, 8, 513) == fused::Logits::kRecomputed);
  CHECK(chosen(256, 1024, 16'000) == fused::Logits::kKept);
  CHECK(chosen(257, 1024, 16'000) == fused::Logits::kRecomputed);
}

TEST_CASE("large logits do not overflow in any chunk") {
  for (const std::int64_t largest : {3, 599}) {
    at::Tensor weight = at::zeros({600, 1});
    weight[largest][0] = 1e4;
    const at::Tensor x = at::zeros({2100, 1}) + 1;
    const at::Tensor target = at::zeros({2100}, at::TensorOptions().dtype(at::kLong)) + 7;
    CHECK(fused_loss({x, weight, target}).item<float>() == Approx(1e4));
  }
}

TEST_CASE("linear_cross_entropy never allocates the logits of all classes at once") {
  install_counting_allocators();
  const std::int64_t tokens = 4096;
  const std::int64_t classes = 8192;
  const at::Tensor x = at::randn({tokens, 8}).requires_grad_(true);
  const at::Tensor weight = at::randn({classes, 8}).requires_grad_(true);
  const at::Tensor target = at::zeros({tokens}, at::TensorOptions().dtype(at::kLong));
  reset_memory_peaks();
  const Bytes before = current_cpu_memory().total;
  fused_loss({x, weight, target}).backward();
  const Bytes peak = peak_cpu_memory();
  CHECK(peak.count - before.count < tokens * classes * std::int64_t{sizeof(float)} / 8);
}

TEST_CASE("linear_cross_entropy rejects mismatched shapes") {
  const at::Tensor x = at::randn({3, 8});
  const at::Tensor weight = at::randn({5, 8});
  const at::Tensor target = at::zeros({3}, at::TensorOptions().dtype(at::kLong));
  CHECK_THROWS_WITH(fused_loss({x, weight, target + 5}),
                    Catch::Contains("target 5 of token 0 is out of range; allowed: 0 to 4"));
  CHECK_THROWS_WITH(fused_loss({x, weight, target - 1}), Catch::Contains("target -1"));
  CHECK_THROWS_WITH(fused_loss({x, weight.t(), target}), Catch::Contains("[classes, width]"));
  CHECK_THROWS_WITH(fused_loss({x, weight.to(at::kDouble), target}),
                    Catch::Contains("the same dtype"));
}

}  // namespace
}  // namespace rematch::testing
