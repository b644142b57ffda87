// The CUDA backends of the attention op against the CPU's kernel in double.
#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/randn.h>

#include "kernels/attention/attention.h"
#include "tests/kernels/composed_attention.h"
#include "tests/support/cuda.h"

namespace rematch {
namespace {

struct Result {
  at::Tensor out, grad_q, grad_k, grad_v;
};

Result attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  const auto leaf = [](const at::Tensor& x) { return x.detach().clone().requires_grad_(true); };
  const at::Tensor own_q = leaf(q);
  const at::Tensor own_k = leaf(k);
  const at::Tensor own_v = leaf(v);
  const at::Tensor out = std::get<0>(attention(own_q, own_k, own_v, /*causal=*/true));
  (out * out).sum().backward();
  return {out.detach(), own_q.grad(), own_k.grad(), own_v.grad()};
}

void check_close(const at::Tensor& found, const at::Tensor& expected, double tolerance) {
  CHECK(at::allclose(found.cpu().to(at::kDouble), expected, tolerance, tolerance));
}

// `tolerance` relative and absolute: a few roundings of the dtype on values of about 1.
void check_dtype(at::ScalarType dtype, double tolerance) {
  const auto rounded = [dtype](const at::Tensor& x) { return x.to(dtype).to(at::kDouble); };
  const auto options = at::TensorOptions().dtype(at::kDouble);
  const at::Tensor q = rounded(at::randn({2, 4, 33, 16}, options));
  const at::Tensor k = rounded(at::randn({2, 2, 33, 16}, options));
  const at::Tensor v = rounded(at::randn({2, 2, 33, 16}, options));
  const Result expected = attend(q, k, v);
  const auto on_cuda = [dtype](const at::Tensor& x) { return x.to(dtype).to(at::kCUDA); };
  const Result found = attend(on_cuda(q), on_cuda(k), on_cuda(v));
  check_close(found.out, expected.out, tolerance);
  check_close(found.grad_q, expected.grad_q, 4 * tolerance);
  check_close(found.grad_k, expected.grad_k, 4 * tolerance);
  check_close(found.grad_v, expected.grad_v, 4 * tolerance);
}

TEST_CASE("each CUDA attention backend agrees with the CPU", "[gpu]") {
  REMATCH_NEEDS_CUDA();
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    for (const AttentionBackend backend : attention_backends(at::kCUDA, dtype)) {
      CAPTURE(dtype, to_string(backend));
      const testing::WithBackend with(backend);
      check_dtype(dtype, dtype == at::kFloat ? 1e-4 : 2e-2);
    }
  }
}

}  // namespace
}  // namespace rematch
