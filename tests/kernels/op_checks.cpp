#include "tests/kernels/op_checks.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/randn.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/function.h>

#include <cctype>
#include <cmath>

#include "harness/engine/interception.h"
#include "tests/models/op_stream.h"
#include "tests/support/catch.h"

namespace rematch::testing {
namespace {

struct Result {
  Tensors outputs;
  Tensors gradients;  // gradients of the inputs that require one
};

// Returns the name of the op's autograd node, for example "RematchSiluMulBackward" for silu_mul.
std::string node_name_of(const std::string& op) {
  std::string words = "_" + op;
  for (std::size_t at = words.find('_'); at != std::string::npos; at = words.find('_')) {
    words.erase(at, 1);
    words[at] = static_cast<char>(std::toupper(words[at]));
  }
  return "Rematch" + words + "Backward";
}

Tensors leaves(const Tensors& inputs, at::ScalarType dtype) {
  Tensors result;
  for (const at::Tensor& input : inputs) {
    if (!input.defined() || !input.is_floating_point()) {
      result.push_back(input);
      continue;
    }
    // Copies the strides too, so that a slice stays a slice in another dtype.
    at::Tensor leaf =
        at::empty_strided(input.sizes(), input.strides(), input.options().dtype(dtype));
    leaf.copy_(input.detach());
    result.push_back(leaf.requires_grad_(input.requires_grad()));
  }
  return result;
}

Tensors differentiated(const Tensors& inputs) {
  Tensors result;
  for (const at::Tensor& input : inputs) {
    if (input.defined() && input.requires_grad()) result.push_back(input);
  }
  return result;
}

// Returns a gradient of each output, with the same values for each dtype.
Tensors weights_for(const Tensors& outputs) {
  const auto options = at::TensorOptions().dtype(at::kDouble);
  Tensors result;
  for (const at::Tensor& out : outputs) {
    const double pace = 0.7 + 0.2 * static_cast<double>(result.size());
    at::Tensor weights = at::arange(out.numel(), options).mul(pace).sin().add(0.2);
    result.push_back(weights.view(out.sizes()).to(out.scalar_type()));
  }
  return result;
}

Result run(const Function& function, const Tensors& inputs) {
  const Tensors outputs = function(inputs).tensors;
  Result result{{}, torch::autograd::grad(outputs, differentiated(inputs), weights_for(outputs))};
  for (const at::Tensor& out : outputs) result.outputs.push_back(out.detach());
  return result;
}

double largest(const at::Tensor& x) {
  return x.numel() == 0 ? 0.0 : x.to(at::kDouble).abs().max().item<double>();
}

void check_close(const at::Tensor& found, const at::Tensor& expected, double tolerance) {
  REQUIRE(found.sizes() == expected.sizes());
  REQUIRE(found.scalar_type() == expected.scalar_type());
  const double difference = largest(found.to(at::kDouble) - expected.to(at::kDouble));
  CHECK(difference <= tolerance * (1.0 + largest(expected)));
}

// Records whether autograd saves tensors before or after the op runs.
class Order final : public OpMode, public SavedTensorProvider {
 public:
  void run(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack,
           std::size_t depth) override {
    ran_ = true;
    call_next(op, keys, stack, depth);
  }
  std::unique_ptr<torch::autograd::SavedVariableHooks> make() override {
    ++(ran_ ? after : before);
    return nullptr;
  }
  int before = 0;
  int after = 0;

 private:
  bool ran_ = false;
};

bool same_layout(const at::Tensor& left, const at::Tensor& right) {
  return left.scalar_type() == right.scalar_type() && left.sizes() == right.sizes() &&
         left.strides() == right.strides();
}

void check_equal(const Result& left, const Result& right) {
  for (std::size_t i = 0; i < left.outputs.size(); ++i) {
    CHECK(at::equal(left.outputs[i], right.outputs[i]));
  }
  for (std::size_t i = 0; i < left.gradients.size(); ++i) {
    CHECK(at::equal(left.gradients[i], right.gradients[i]));
  }
}

}  // namespace

at::Tensor random(at::IntArrayRef sizes) {
  return at::randn(sizes, at::TensorOptions().dtype(at::kDouble));
}

void check_one_op(const OpCase& op) {
  const Tensors inputs = leaves(op.inputs, at::kFloat);
  OpStream forward;
  Tensors outputs;
  {
    const OpModeGuard guard(&forward);
    outputs = op.fused(inputs).tensors;
  }
  CHECK(forward.names() == std::vector<std::string>{"rematch::" + op.name});
  for (const at::Tensor& out : outputs) CHECK(out.grad_fn()->name() == node_name_of(op.name));
  const Tensors weights = weights_for(outputs);
  OpStream backward;
  {
    const OpModeGuard guard(&backward);
    torch::autograd::grad(outputs, differentiated(inputs), weights);
  }
  CHECK(backward.names() == std::vector<std::string>{"rematch::" + op.name + "_backward"});
  Order order;
  {
    const OpModeGuard modes(&order);
    const SavedTensorGuard provider(&order);
    op.fused(inputs);
  }
  CHECK(order.before == op.saved_before);
  CHECK(order.after == op.saved_after);
}

void check_composition(const OpCase& op, at::ScalarType dtype, double tolerance) {
  CAPTURE(dtype);
  const Tensors inputs = leaves(op.inputs, dtype);
  const Result fused = run(op.fused, inputs);
  const Result composed = run(op.composed, inputs);
  REQUIRE(fused.outputs.size() == composed.outputs.size());
  for (std::size_t i = 0; i < fused.outputs.size(); ++i) {
    check_close(fused.outputs[i], composed.outputs[i], tolerance);
  }
  for (std::size_t i = 0; i < fused.gradients.size(); ++i) {
    CAPTURE(i);
    check_close(fused.gradients[i], composed.gradients[i], tolerance);
  }
}

void check_finite_differences(const OpCase& op) {
  const Tensors inputs = leaves(op.inputs, at::kDouble);
  const Tensors gradients = run(op.fused, inputs).gradients;
  const Tensors moved = differentiated(inputs);
  const at::NoGradGuard no_grad;
  const auto objective = [&] {
    const Tensors outputs = op.fused(inputs).tensors;
    const Tensors weights = weights_for(outputs);
    double total = 0;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      total += (outputs[i] * weights[i]).sum().item<double>();
    }
    return total;
  };
  constexpr double kStep = 1e-6;
  for (std::size_t i = 0; i < moved.size(); ++i) {
    CAPTURE(i);
    const at::Tensor direction =
        at::randn(moved[i].sizes(), at::TensorOptions().dtype(at::kDouble));
    moved[i].detach().add_(direction, kStep);
    const double above = objective();
    moved[i].detach().add_(direction, -2 * kStep);
    const double below = objective();
    moved[i].detach().add_(direction, kStep);
    const double slope = (gradients[i] * direction).sum().item<double>();
    CHECK((above - below) / (2 * kStep) == Approx(slope).epsilon(1e-6).margin(1e-7));
  }
}

void check_meta(const OpCase& op, at::ScalarType dtype) {
  CAPTURE(dtype);
  const Tensors inputs = leaves(op.inputs, dtype);
  Tensors on_meta;
  for (const at::Tensor& input : inputs) {
    if (!input.defined()) {
      on_meta.push_back(input);
      continue;
    }
    const at::Tensor meta = at::empty_strided(
        input.sizes(), input.strides(), input.options().device(at::kMeta).requires_grad(false));
    on_meta.push_back(input.requires_grad() ? meta.detach().requires_grad_(true) : meta);
  }
  const Result expected = run(op.fused, inputs);
  const Tensors outputs = op.fused(on_meta).tensors;
  Tensors weights = weights_for(expected.outputs);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    CHECK(same_layout(outputs[i], expected.outputs[i]));
    weights[i] = weights[i].to(at::kMeta);
  }
  const Tensors gradients = torch::autograd::grad(outputs, differentiated(on_meta), weights);
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    CHECK(same_layout(gradients[i], expected.gradients[i]));
  }
}

void check_bits(const OpCase& op, at::ScalarType dtype) {
  CAPTURE(dtype);
  const int num_threads = at::get_num_threads();
  const Tensors inputs = leaves(op.inputs, dtype);
  at::set_num_threads(1);
  const Result alone = run(op.fused, inputs);
  check_equal(run(op.fused, inputs), alone);
  at::set_num_threads(3);
  const Result together = run(op.fused, inputs);
  check_equal(run(op.fused, inputs), together);
  if (op.same_bits_for_any_threads) check_equal(together, alone);
  at::set_num_threads(num_threads);
}

void check_second_derivative(const OpCase& op) {
  const Tensors inputs = leaves(op.inputs, at::kFloat);
  const Tensors outputs = op.fused(inputs).tensors;
  const Tensors needed = differentiated(inputs);
  const Tensors weights = weights_for(outputs);
  weights[0].requires_grad_(true);
  const Tensors gradients = torch::autograd::grad(outputs, needed, weights, /*retain_graph=*/true,
                                                  /*create_graph=*/true);
  // The last gradient is computed by the backward op of every fused op.
  CHECK_THROWS_WITH(torch::autograd::grad({gradients.back().sum()}, {weights[0]}),
                    Catch::Contains("rematch::" + op.name + "_backward"));
}

void check_partial(const OpCase& op) {
  const Tensors inputs = leaves(op.inputs, at::kFloat);
  const Result all = run(op.fused, inputs);
  std::size_t gradient = 0;
  for (const at::Tensor& input : inputs) {
    if (!input.defined() || !input.requires_grad()) continue;
    Tensors only;
    for (const at::Tensor& other : inputs) {
      only.push_back(!other.defined() || other.is_same(input) ? other : other.detach());
    }
    const Result one = run(op.fused, only);
    REQUIRE(one.gradients.size() == 1);
    CHECK(at::equal(one.gradients[0], all.gradients[gradient++]));
  }
  const at::NoGradGuard no_grad;
  for (const at::Tensor& out : op.fused(inputs).tensors) CHECK_FALSE(out.requires_grad());
}

void check_op(const OpCase& op) {
  check_one_op(op);
  // In float32, results may differ by a few rounding errors. In bfloat16, the separate ops round
  // each result to 2^-8, and a fused op rounds once.
  check_composition(op, at::kFloat, 4e-6);
  check_composition(op, at::kBFloat16, 2e-2);
  check_composition(op, at::kDouble, 1e-13);
  check_finite_differences(op);
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16, at::kDouble}) {
    check_meta(op, dtype);
    check_bits(op, dtype);
  }
  check_second_derivative(op);
  check_partial(op);
}

}  // namespace rematch::testing
