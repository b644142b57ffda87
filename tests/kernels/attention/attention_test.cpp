#include "kernels/attention/attention.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/variable.h>

#include "tests/support/catch.h"

#include "tests/models/op_stream.h"

using rematch::attention;

namespace {

struct Case {
  std::int64_t batch, heads, kv_heads, tokens, kv_tokens, head_dim;
  bool causal;
  at::ScalarType dtype;
  bool transposed;  // laid out [batch, tokens, heads, head_dim], as models make it
};

const std::vector<Case>& cases() {
  static const std::vector<Case> list = {
      {2, 4, 4, 8, 8, 16, true, at::kFloat, true},
      {1, 4, 2, 33, 33, 16, true, at::kFloat, true},
      {2, 6, 2, 7, 5, 10, false, at::kFloat, true},
      {2, 4, 4, 8, 8, 16, false, at::kFloat, false},
      {2, 4, 2, 9, 9, 8, true, at::kDouble, true},
      {1, 3, 1, 5, 12, 6, false, at::kDouble, false},
      {2, 4, 2, 33, 33, 16, true, at::kBFloat16, true},
      {1, 2, 2, 1, 1, 2, true, at::kFloat, true},
  };
  return list;
}

at::Tensor make_input(const Case& shape, std::int64_t heads, std::int64_t tokens) {
  const auto options = at::TensorOptions().dtype(at::kDouble);
  at::Tensor tensor = shape.transposed
                          ? at::randn({shape.batch, tokens, heads, shape.head_dim}, options)
                          : at::randn({shape.batch, heads, tokens, shape.head_dim}, options);
  tensor = tensor.to(shape.dtype);
  if (shape.transposed) tensor = tensor.transpose(1, 2);
  return tensor.detach().requires_grad_(true);
}

struct Inputs {
  at::Tensor q, k, v;
};

Inputs make_inputs(const Case& shape) {
  return {make_input(shape, shape.heads, shape.tokens),
          make_input(shape, shape.kv_heads, shape.kv_tokens),
          make_input(shape, shape.kv_heads, shape.kv_tokens)};
}

at::Tensor on_meta(const at::Tensor& tensor) {
  at::Tensor meta = at::empty_strided(tensor.sizes(), tensor.strides(),
                                      tensor.options().device(at::kMeta).requires_grad(false));
  return meta.requires_grad_(true);
}

// Gradients of q, k and v; any gradient of the output goes in.
std::vector<at::Tensor> backward(const at::Tensor& out, const Inputs& inputs,
                                 const at::Tensor& grad_out) {
  return torch::autograd::grad({out}, {inputs.q, inputs.k, inputs.v}, {grad_out});
}

}  // namespace

TEST_CASE("attention is one op at the dispatcher, forward and backward") {
  const Inputs inputs = make_inputs(cases()[1]);
  rematch::OpStream forward;
  at::Tensor out;
  {
    const rematch::OpModeGuard guard(&forward);
    out = std::get<0>(attention(inputs.q, inputs.k, inputs.v, true));
  }
  CHECK(forward.names() == std::vector<std::string>{"rematch::attention"});
  const at::Tensor grad_out = at::randn(out.sizes());
  rematch::OpStream backward_ops;
  {
    const rematch::OpModeGuard guard(&backward_ops);
    backward(out, inputs, grad_out);
  }
  std::size_t count = 0;
  for (const std::string& name : backward_ops.names()) {
    CHECK(name.find("scaled_dot_product") == std::string::npos);
    if (name == "rematch::attention_backward") ++count;
  }
  CHECK(count == 1);
}

TEST_CASE("outputs and gradients have the bits of LibTorch's own flash op") {
  for (const Case& shape : cases()) {
    CAPTURE(shape.heads, shape.kv_heads, shape.tokens, shape.head_dim, shape.dtype);
    const Inputs inputs = make_inputs(shape);
    for (const std::optional<double> scale : {std::optional<double>(), std::optional(0.3)}) {
      const auto [out, logsumexp] = attention(inputs.q, inputs.k, inputs.v, shape.causal, scale);
      const auto [expected, expected_logsumexp] = at::_scaled_dot_product_flash_attention_for_cpu(
          inputs.q, inputs.k, inputs.v, 0.0, shape.causal, std::nullopt, scale);
      CHECK(at::equal(out, expected));
      CHECK(at::equal(logsumexp, expected_logsumexp));
      CHECK_FALSE(logsumexp.requires_grad());
      const at::Tensor grad_out = at::randn(out.sizes()).to(shape.dtype);
      const auto gradients = backward(out, inputs, grad_out);
      const auto expected_gradients = backward(expected, inputs, grad_out);
      for (std::size_t i = 0; i < gradients.size(); ++i) {
        CHECK(at::equal(gradients[i], expected_gradients[i]));
      }
    }
  }
}

TEST_CASE("gradients agree with central differences in double") {
  for (const Case& shape : cases()) {
    if (shape.dtype != at::kDouble) continue;
    const Inputs inputs = make_inputs(shape);
    const at::Tensor out = std::get<0>(attention(inputs.q, inputs.k, inputs.v, shape.causal));
    const at::Tensor weights = at::randn(out.sizes(), out.options().requires_grad(false));
    const auto gradients = backward(out, inputs, weights);
    const at::NoGradGuard no_grad;
    const auto objective = [&] {
      return (std::get<0>(attention(inputs.q, inputs.k, inputs.v, shape.causal)) * weights)
          .sum()
          .item<double>();
    };
    constexpr double kStep = 1e-6;
    const std::vector<at::Tensor> tensors = {inputs.q, inputs.k, inputs.v};
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const at::Tensor direction = at::randn(tensors[i].sizes(), weights.options());
      tensors[i].detach().add_(direction, kStep);
      const double above = objective();
      tensors[i].detach().add_(direction, -2 * kStep);
      const double below = objective();
      tensors[i].detach().add_(direction, kStep);
      const double slope = (gradients[i] * direction).sum().item<double>();
      CHECK((above - below) / (2 * kStep) == Approx(slope).epsilon(1e-6).margin(1e-7));
    }
  }
}

TEST_CASE("on meta, outputs and gradients have the CPU's dtypes, shapes and strides") {
  const auto same_layout = [](const at::Tensor& left, const at::Tensor& right) {
    return left.scalar_type() == right.scalar_type() && left.sizes() == right.sizes() &&
           left.strides() == right.strides();
  };
  for (const Case& shape : cases()) {
    CAPTURE(shape.heads, shape.kv_heads, shape.tokens, shape.head_dim, shape.dtype,
            shape.transposed);
    const Inputs inputs = make_inputs(shape);
    const Inputs meta{on_meta(inputs.q), on_meta(inputs.k), on_meta(inputs.v)};
    const auto [out, logsumexp] = attention(inputs.q, inputs.k, inputs.v, shape.causal);
    const auto [meta_out, meta_logsumexp] = attention(meta.q, meta.k, meta.v, shape.causal);
    CHECK(same_layout(out, meta_out));
    CHECK(same_layout(logsumexp, meta_logsumexp));
    const at::Tensor grad_out = at::zeros_like(out);
    const auto gradients = backward(out, inputs, grad_out);
    const auto meta_gradients = backward(meta_out, meta, grad_out.to(at::kMeta));
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      CHECK(same_layout(gradients[i], meta_gradients[i]));
    }
  }
}

namespace {

// Notes when tensors are saved and when ops run.
class Order final : public rematch::OpMode, public rematch::SavedTensorProvider {
 public:
  void run(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack,
           std::size_t depth) override {
    events += "op ";
    rematch::call_next(op, keys, stack, depth);
  }
  std::unique_ptr<torch::autograd::SavedVariableHooks> make() override {
    events += "save ";
    return nullptr;
  }
  std::string events;
};

}  // namespace

// A recompute that stops at the last tensor it needs must not run the kernel for its inputs' sake.
TEST_CASE("inputs are saved before the kernel runs, outputs after") {
  const Inputs inputs = make_inputs(cases()[0]);
  Order order;
  {
    const rematch::OpModeGuard modes(&order);
    const rematch::SavedTensorGuard provider(&order);
    attention(inputs.q, inputs.k, inputs.v, true);
  }
  CHECK(order.events == "save save save op save save ");
}

TEST_CASE("without grad mode no graph is built") {
  const Inputs inputs = make_inputs(cases()[0]);
  const at::NoGradGuard no_grad;
  CHECK_FALSE(std::get<0>(attention(inputs.q, inputs.k, inputs.v, true)).requires_grad());
}

TEST_CASE("only some inputs may need a gradient") {
  const Inputs inputs = make_inputs(cases()[1]);
  const at::Tensor out =
      std::get<0>(attention(inputs.q.detach(), inputs.k, inputs.v.detach(), true));
  const at::Tensor grad_out = at::randn(out.sizes());
  const auto gradients = torch::autograd::grad({out}, {inputs.k}, {grad_out});
  const at::Tensor all = std::get<0>(attention(inputs.q, inputs.k, inputs.v, true));
  CHECK(at::equal(gradients[0], backward(all, inputs, grad_out)[1]));
}

TEST_CASE("shapes that do not fit are refused by name") {
  const at::Tensor q = at::randn({1, 4, 8, 16});
  CHECK_THROWS_WITH(
      attention(q, at::randn({1, 3, 8, 16}), at::randn({1, 3, 8, 16}), true),
      Catch::Contains("number of heads that divides q's") && Catch::Contains("[1, 4, 8, 16]"));
  CHECK_THROWS_WITH(attention(q, at::randn({4, 8, 16}), at::randn({4, 8, 16}), true),
                    Catch::Contains("[batch, heads, tokens, head_dim]"));
  CHECK_THROWS_WITH(attention(q, q.to(at::kDouble), q, true), Catch::Contains("one dtype"));
}

TEST_CASE("a second derivative is refused when it is asked for") {
  const Inputs inputs = make_inputs(cases()[0]);
  const at::Tensor out = std::get<0>(attention(inputs.q, inputs.k, inputs.v, true));
  const auto gradients =
      torch::autograd::grad({out}, {inputs.q}, {at::randn(out.sizes())}, /*retain_graph=*/true,
                            /*create_graph=*/true);
  CHECK_THROWS_WITH(torch::autograd::grad({gradients[0].sum()}, {inputs.q}),
                    Catch::Contains("rematch::attention_backward is not implemented"));
}
