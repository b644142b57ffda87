#include "kernels/attention/attention.h"

#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/triu.h>
#include <torch/csrc/autograd/autograd.h>

#include <limits>

#include "tests/kernels/composed_attention.h"
#include "tests/kernels/op_checks.h"
#include "tests/support/catch.h"

namespace rematch::testing {
namespace {

struct Case {
  std::int64_t batch, heads, kv_heads, tokens, kv_tokens, head_dim;
  bool causal;
  at::ScalarType dtype;
  bool transposed;  // laid out [batch, tokens, heads, head_dim], as models do
  std::optional<double> scale;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> list = {
      {2, 4, 4, 8, 8, 16, true, at::kFloat, true, {}},
      {1, 4, 2, 33, 33, 16, true, at::kFloat, true, 0.3},
      {2, 6, 2, 7, 5, 10, false, at::kFloat, true, {}},
      {2, 4, 4, 8, 8, 16, false, at::kFloat, false, 0.3},
      {2, 4, 2, 9, 9, 8, true, at::kDouble, true, {}},
      {1, 3, 1, 5, 12, 6, false, at::kDouble, false, {}},
      {2, 4, 2, 33, 33, 16, true, at::kBFloat16, true, {}},
      {1, 2, 2, 1, 1, 2, true, at::kFloat, true, {}},
  };
  return list;
}

at::Tensor make_input(const Case& shape, std::int64_t heads, std::int64_t tokens) {
  const auto options = at::TensorOptions().dtype(at::kDouble);
  const at::Tensor tensor =
      shape.transposed
          ? at::randn({shape.batch, tokens, heads, shape.head_dim}, options).transpose(1, 2)
          : at::randn({shape.batch, heads, tokens, shape.head_dim}, options);
  return tensor.detach().requires_grad_(true);
}

Tensors make_inputs(const Case& shape) {
  return {make_input(shape, shape.heads, shape.tokens),
          make_input(shape, shape.kv_heads, shape.kv_tokens),
          make_input(shape, shape.kv_heads, shape.kv_tokens)};
}

at::Tensor mask_of(const Case& shape) {
  const double hidden = shape.causal ? -std::numeric_limits<double>::infinity() : 0.0;
  return at::triu(at::full({shape.tokens, shape.kv_tokens}, hidden, at::kDouble), /*diagonal=*/1);
}

OpCase op_case(const Case& shape) {
  return {
      "attention",
      [shape](const Tensors& inputs) {
        return std::get<0>(attention(inputs[0], inputs[1], inputs[2], shape.causal, shape.scale));
      },
      [shape](const Tensors& inputs) {
        return composed_attention(inputs[0], inputs[1], inputs[2], mask_of(shape), shape.scale);
      },
      make_inputs(shape),
      /*saved_before=*/3,  // saved before the kernel runs, so that recompute can stop there
      /*saved_after=*/2,
      // On non-Intel CPUs, the bits of MKL's results depend on the alignment of each thread's
      // buffer.
      /*same_bits_for_any_threads=*/false};
}

at::Tensor leaf(const at::Tensor& tensor, at::ScalarType dtype, at::DeviceType device) {
  at::Tensor copy = at::empty_strided(tensor.sizes(), tensor.strides(),
                                      at::TensorOptions().dtype(dtype).device(device));
  if (device != at::kMeta) copy.copy_(tensor.detach());
  return copy.requires_grad_(true);
}

Tensors leaves(const Case& shape, at::DeviceType device = at::kCPU) {
  Tensors result;
  for (const at::Tensor& input : make_inputs(shape)) {
    result.push_back(leaf(input, shape.dtype, device));
  }
  return result;
}

TEST_CASE("attention satisfies the checks of fused ops") {
  for (const Case& shape : cases()) {
    CAPTURE(shape.heads, shape.kv_heads, shape.tokens, shape.head_dim, shape.causal);
    check_op(op_case(shape));
  }
}

TEST_CASE("attention composed from ATen ops satisfies the checks of fused ops") {
  const WithBackend math(AttentionBackend::kMath);
  for (const Case& shape : cases()) {
    CAPTURE(shape.heads, shape.kv_heads, shape.tokens, shape.head_dim, shape.causal);
    check_op(op_case(shape));
  }
  const Tensors inputs = leaves(cases()[0]);
  const auto [out, logsumexp] = attention(inputs[0], inputs[1], inputs[2], true);
  const auto flash =
      at::_scaled_dot_product_flash_attention_for_cpu(inputs[0], inputs[1], inputs[2], 0.0, true);
  CHECK_FALSE(at::equal(out, std::get<0>(flash)));
  CHECK(at::allclose(out, std::get<0>(flash), 1e-5, 1e-6));
  CHECK(at::allclose(logsumexp, std::get<1>(flash), 1e-5, 1e-6));
  CHECK(logsumexp.strides() == std::get<1>(flash).strides());
}

std::string names_of(c10::DeviceType device, c10::ScalarType dtype) {
  std::string names;
  for (const AttentionBackend backend : attention_backends(device, dtype)) {
    names.append(to_string(backend)).append(" ");
  }
  return names;
}

TEST_CASE(
    "each device has a list of attention backends for each dtype, and backend names can be "
    "parsed") {
  CHECK(names_of(at::kCPU, at::kBFloat16) == "flash math ");
  CHECK(names_of(at::kCUDA, at::kFloat) == "efficient math ");
  CHECK(names_of(at::kCUDA, at::kBFloat16) == "flash cudnn efficient math ");
  for (const AttentionBackend backend : attention_backends(at::kCUDA, at::kBFloat16)) {
    CHECK((attention_backend_from_string(to_string(backend)) == backend));
  }
  CHECK_FALSE(attention_backend_from_string("xformers").has_value());
}

TEST_CASE(
    "attention's output and gradients are bitwise equal to those of LibTorch's flash attention") {
  for (const Case& shape : cases()) {
    CAPTURE(shape.heads, shape.kv_heads, shape.tokens, shape.head_dim, shape.dtype);
    const Tensors inputs = leaves(shape);
    const auto [out, logsumexp] =
        attention(inputs[0], inputs[1], inputs[2], shape.causal, shape.scale);
    const auto [expected, expected_logsumexp] = at::_scaled_dot_product_flash_attention_for_cpu(
        inputs[0], inputs[1], inputs[2], 0.0, shape.causal, std::nullopt, shape.scale);
    CHECK(at::equal(out, expected));
    CHECK(at::equal(logsumexp, expected_logsumexp));
    CHECK_FALSE(logsumexp.requires_grad());
    const at::Tensor grad_out = at::randn(out.sizes()).to(shape.dtype);
    const auto gradients = torch::autograd::grad({out}, inputs, {grad_out});
    const auto expected_gradients = torch::autograd::grad({expected}, inputs, {grad_out});
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      CHECK(at::equal(gradients[i], expected_gradients[i]));
    }
  }
}

TEST_CASE("attention's log-sum-exp has the same layout on meta as on the CPU") {
  for (const Case& shape : cases()) {
    CAPTURE(shape.heads, shape.tokens, shape.dtype, shape.transposed);
    const Tensors inputs = leaves(shape);
    const Tensors meta = leaves(shape, at::kMeta);
    const at::Tensor found = std::get<1>(attention(meta[0], meta[1], meta[2], shape.causal));
    const at::Tensor expected =
        std::get<1>(attention(inputs[0], inputs[1], inputs[2], shape.causal));
    CHECK(found.scalar_type() == expected.scalar_type());
    CHECK(found.sizes() == expected.sizes());
    CHECK(found.strides() == expected.strides());
  }
}

TEST_CASE("the error for mismatched shapes names the argument") {
  const at::Tensor q = at::randn({1, 4, 8, 16});
  CHECK_THROWS_WITH(attention(q, at::randn({1, 3, 8, 16}), at::randn({1, 3, 8, 16}), true),
                    Catch::Contains("head count that divides q's head count") &&
                        Catch::Contains("[1, 4, 8, 16]"));
  CHECK_THROWS_WITH(attention(q, at::randn({4, 8, 16}), at::randn({4, 8, 16}), true),
                    Catch::Contains("[batch, heads, tokens, head_dim]"));
  CHECK_THROWS_WITH(attention(q, q.to(at::kDouble), q, true), Catch::Contains("the same dtype"));
}

}  // namespace
}  // namespace rematch::testing
