// Compares the CUDA backends of the attention op with the CPU's kernel in double.
#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/randn.h>

#include "kernels/attention/attention.h"
#include "tests/kernels/composed_attention.h"
#include "tests/support/cuda.h"

namespace rematch {
namespace {

constexpr at::DeviceType kDevice = at::kCUDA;

struct Result {
  at::Tensor out, grad_q, grad_k, grad_v;
};

// The inputs of one attention call: q, k, v and an optional mask. Without a mask, attention may be
// causal.
struct Inputs {
  at::Tensor q, k, v, mask;
  bool causal = false;

  Inputs to(at::ScalarType dtype, at::DeviceType device) const {
    const auto moved = [&](const at::Tensor& x) {
      return x.defined() ? x.to(dtype).to(device) : x;
    };
    return {moved(q), moved(k), moved(v), moved(mask), causal};
  }
};

Result attend(const Inputs& inputs) {
  const auto leaf = [](const at::Tensor& x) { return x.detach().clone().requires_grad_(true); };
  const at::Tensor q = leaf(inputs.q);
  const at::Tensor k = leaf(inputs.k);
  const at::Tensor v = leaf(inputs.v);
  const at::Tensor out = inputs.mask.defined() ? std::get<0>(masked_attention(q, k, v, inputs.mask))
                                               : std::get<0>(attention(q, k, v, inputs.causal));
  (out * out).sum().backward();
  return {out.detach(), q.grad(), k.grad(), v.grad()};
}

void check_close(const at::Tensor& found, const at::Tensor& expected, double tolerance) {
  CHECK(at::allclose(found.cpu().to(at::kDouble), expected, tolerance, tolerance));
}

// Compares with the CPU's kernel in double on the same rounded inputs, and checks that a second run
// gives the same bits. `tolerance` is relative and absolute, and allows a few rounding errors for
// values of about 1.
void check_inputs(const Inputs& inputs, at::ScalarType dtype, double tolerance) {
  const Inputs rounded = inputs.to(dtype, at::kCPU).to(at::kDouble, at::kCPU);
  const Result expected = attend(rounded);
  const Inputs moved = rounded.to(dtype, kDevice);
  const Result found = attend(moved);
  check_close(found.out, expected.out, tolerance);
  check_close(found.grad_q, expected.grad_q, 4 * tolerance);
  check_close(found.grad_k, expected.grad_k, 4 * tolerance);
  check_close(found.grad_v, expected.grad_v, 4 * tolerance);
  const Result again = attend(moved);
  CHECK(at::equal(found.out, again.out));
  CHECK(at::equal(found.grad_q, again.grad_q));
  CHECK(at::equal(found.grad_k, again.grad_k));
  CHECK(at::equal(found.grad_v, again.grad_v));
}

void check_on_every_backend(const std::vector<Inputs>& cases) {
  at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/false);
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    for (const AttentionBackend backend : attention_backends(kDevice, dtype)) {
      const testing::WithBackend with(backend);
      for (std::size_t index = 0; index < cases.size(); ++index) {
        CAPTURE(dtype, to_string(backend), index);
        check_inputs(cases[index], dtype, dtype == at::kFloat ? 1e-4 : 2e-2);
      }
    }
  }
}

at::Tensor random(at::IntArrayRef sizes) {
  return at::randn(sizes, at::TensorOptions().dtype(at::kDouble));
}

// The first case is causal with two query heads per key head, as in Llama. The second case has as
// many keys as queries, as in a DiT's self-attention. The third case has fewer keys, as in a DiT's
// attention to the text.
TEST_CASE("each CUDA attention backend agrees with the CPU", "[gpu]") {
  REMATCH_NEEDS_GPU();
  check_on_every_backend(
      {{random({2, 4, 33, 16}), random({2, 2, 33, 16}), random({2, 2, 33, 16}), {}, true},
       {random({2, 4, 33, 16}), random({2, 4, 33, 16}), random({2, 4, 33, 16}), {}, false},
       {random({2, 4, 33, 16}), random({2, 4, 7, 16}), random({2, 4, 7, 16}), {}, false}});
}

// The masks broadcast over queries and heads, over heads, over the batch, or not at all. A row of
// 21 keys is not aligned. No fused kernel supports a head width of 10.
TEST_CASE("masked attention on CUDA agrees with the CPU", "[gpu]") {
  REMATCH_NEEDS_GPU();
  std::vector<Inputs> cases;
  for (const std::int64_t head_dim : {16, 10}) {
    for (const auto& mask : std::vector<std::vector<std::int64_t>>{
             {2, 1, 1, 21}, {2, 1, 33, 21}, {1, 4, 33, 21}, {2, 4, 33, 21}}) {
      cases.push_back({random({2, 4, 33, head_dim}), random({2, 4, 21, head_dim}),
                       random({2, 4, 21, head_dim}), random(mask)});
    }
  }
  at::Tensor hidden = random({2, 1, 1, 21});
  hidden.narrow(3, 5, 16).fill_(-1e30);  // hides the padding after a text of 5 tokens
  cases.push_back({random({2, 4, 33, 16}), random({2, 4, 21, 16}), random({2, 4, 21, 16}), hidden});
  check_on_every_backend(cases);
}

}  // namespace
}  // namespace rematch
