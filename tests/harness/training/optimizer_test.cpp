#include "harness/training/optimizer.h"

#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/ones.h>

#include <cmath>

#include "tests/support/catch.h"

namespace rematch {
namespace {

at::Tensor leaf(const at::Tensor& values) { return values.clone().requires_grad_(); }

void set_gradient(const at::Tensor& parameter, double value) {
  parameter.mutable_grad() = at::full(parameter.sizes(), value, parameter.options());
}

// AdamW as in its paper, for a single number in float64.
class ScalarAdamW {
 public:
  double step(double parameter, double gradient) {
    const AdamWSettings s;
    ++steps_;
    parameter *= 1 - s.learning_rate * s.weight_decay;
    first_ = s.beta1 * first_ + (1 - s.beta1) * gradient;
    second_ = s.beta2 * second_ + (1 - s.beta2) * gradient * gradient;
    const double corrected_first = first_ / (1 - std::pow(s.beta1, steps_));
    const double corrected_second = second_ / (1 - std::pow(s.beta2, steps_));
    return parameter -
           s.learning_rate * corrected_first / (std::sqrt(corrected_second) + s.epsilon);
  }

 private:
  int steps_ = 0;
  double first_ = 0;
  double second_ = 0;
};

TEST_CASE("AdamW's step follows its formula") {
  const at::Tensor parameter = leaf(at::ones({3}));
  const auto optimizer = make_optimizer(OptimizerKind::kAdamW, {parameter});
  ScalarAdamW expected;
  double value = 1;
  for (const double gradient : {0.5, -2.0, 0.1, 0.1}) {
    set_gradient(parameter, gradient);
    optimizer->step();
    value = expected.step(value, gradient);
    CHECK(parameter[0].item<double>() == Catch::Detail::Approx(value).epsilon(1e-6));
  }
}

TEST_CASE("a parameter without a gradient is not updated, and does not block other parameters") {
  const at::Tensor idle = leaf(at::ones({2}));
  const at::Tensor busy = leaf(at::ones({2}));
  const auto optimizer = make_optimizer(OptimizerKind::kAdamW, {idle, busy});
  set_gradient(busy, 1);
  optimizer->step();
  CHECK(idle[0].item<float>() == 1.0F);
  CHECK(busy[0].item<float>() < 1.0F);
}

// The parameter is 256, and the next smaller bfloat16 number is 255. Each step subtracts only 1e-3,
// so without a float32 master the parameter would never change.
TEST_CASE("bfloat16 parameters are updated through float32 masters") {
  const at::Tensor parameter = leaf(at::full({1}, 256, at::kBFloat16));
  const auto optimizer = make_optimizer(OptimizerKind::kAdamW, {parameter});
  for (int step = 0; step < 1500; ++step) {
    set_gradient(parameter, 1);
    optimizer->step();
  }
  CHECK(parameter.scalar_type() == at::kBFloat16);
  CHECK(parameter[0].item<float>() < 256.0F);
}

// LibTorch's op takes a float32 copy of the gradient. Both round the same formula differently.
TEST_CASE("AdamW in one pass gives the numbers of LibTorch's op, for every dtype of gradient") {
  for (const at::ScalarType gradient_dtype : {at::kBFloat16, at::kFloat}) {
    std::vector<at::Tensor> one_pass, reference;
    for (const std::int64_t size : {1, 7, 300, 40'000}) {
      const at::Tensor values = at::linspace(-2, 2, size).to(at::kBFloat16);
      for (auto* list : {&one_pass, &reference}) {
        list->push_back(leaf(values));
        list->back().set_grad_dtype(gradient_dtype);
      }
    }
    const auto optimizer = make_optimizer(OptimizerKind::kAdamW, one_pass, Ops::kFused);
    const auto expected = make_optimizer(OptimizerKind::kAdamW, reference);
    for (const double gradient : {0.5, -2.0, 0.1}) {
      for (std::size_t i = 0; i < one_pass.size(); ++i) {
        const at::Tensor values =
            at::linspace(0.1, gradient, one_pass[i].numel()).to(gradient_dtype);
        one_pass[i].mutable_grad() = values;
        reference[i].mutable_grad() = values;
      }
      optimizer->step();
      expected->step();
    }
    const std::vector<at::Tensor> found = optimizer->state();
    const std::vector<at::Tensor> state = expected->state();
    REQUIRE(found.size() == state.size());
    for (std::size_t i = 0; i < state.size(); ++i) {
      CHECK(at::allclose(found[i], state[i], /*rtol=*/1e-6, /*atol=*/1e-8));
    }
    for (std::size_t i = 0; i < one_pass.size(); ++i) {
      CHECK(at::allclose(one_pass[i].to(at::kFloat), reference[i].to(at::kFloat), 1e-2, 1e-6));
      CHECK(one_pass[i].equal(found[4 * i + 3].to(at::kBFloat16)));  // the rounded master
    }
  }
}

TEST_CASE("optimizer `none` changes no parameter") {
  const at::Tensor parameter = leaf(at::ones({2}));
  set_gradient(parameter, 1);
  make_optimizer(OptimizerKind::kNothing, {parameter})->step();
  CHECK(parameter[0].item<float>() == 1.0F);
}

TEST_CASE("an optimizer's canonical spelling is parsed as the same optimizer") {
  for (const char* text : {"adamw", "none", "adamw(learning_rate=3e-04)"}) {
    const std::optional<OptimizerChoice> choice = optimizer_from_string(text);
    REQUIRE(choice.has_value());
    CHECK(to_string(*choice) == to_string(*optimizer_from_string(to_string(*choice))));
  }
  CHECK(optimizer_from_string("adamw(learning_rate=0.5)")->settings.learning_rate == 0.5);
  CHECK(to_string(*optimizer_from_string("adamw(learning_rate=0.001)")) == "adamw");
  for (const char* text :
       {"sgd", "adamw()", "adamw(learning_rate=0)", "adamw(learning_rate=-1)",
        "adamw(learning_rate=1e-3", "adamw(learning_rate=1x)", "adamw(learning_rate=inf)"}) {
    CAPTURE(text);
    CHECK_FALSE(optimizer_from_string(text).has_value());
  }
}

}  // namespace
}  // namespace rematch
