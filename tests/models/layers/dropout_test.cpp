#include "models/layers/linear.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/ones.h>

#include "tests/support/catch.h"

using namespace rematch;

TEST_CASE("dropout with rate zero returns its input and draws nothing") {
  at::manual_seed(1);
  const at::Tensor state = at::detail::getDefaultCPUGenerator().get_state();
  const at::Tensor x = at::ones({8});
  CHECK(dropout(x, 0.0).is_same(x));
  CHECK(at::detail::getDefaultCPUGenerator().get_state().equal(state));
}

// With 40000 draws the dropped fraction has a standard deviation of 0.0023.
TEST_CASE("dropout zeroes the given fraction and scales the rest, in values and in gradients") {
  at::manual_seed(1);
  const at::Tensor x = at::ones({200, 200}).requires_grad_(true);
  const at::Tensor y = dropout(x, 0.3);
  const at::Tensor dropped = y.eq(0);
  CHECK(dropped.to(at::kDouble).mean().item<double>() == Approx(0.3).margin(0.01));
  CHECK(y.max().item<float>() == Approx(1 / 0.7F));
  y.sum().backward();
  CHECK(x.grad().eq(0).equal(dropped));
  CHECK(x.grad().max().item<float>() == Approx(1 / 0.7F));
}
