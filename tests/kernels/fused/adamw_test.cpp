// Values are compared with LibTorch's op in tests/harness/training/optimizer_test.cpp.
#include "kernels/fused/adamw.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>

#include <cmath>

#include "tests/models/op_stream.h"
#include "tests/support/catch.h"

namespace rematch::testing {
namespace {

constexpr fused::AdamWSettings kSettings{1e-2, 0.9, 0.95, 1e-8, 0.01};

// Returns the tensors of parameters of these sizes, all at step 1 with moments of 0.
fused::AdamWTensors adamw_tensors(const std::vector<std::int64_t>& sizes, at::Device device) {
  fused::AdamWTensors tensors;
  const auto options = at::TensorOptions().device(device);
  for (const std::int64_t size : sizes) {
    const at::Tensor value = at::randn({size}, options);
    tensors.values.push_back(value);
    tensors.parameters.push_back(value.to(at::kBFloat16));
    tensors.gradients.push_back(at::randn({size}, options).to(at::kBFloat16));
    tensors.first_moments.push_back(at::zeros({size}, options));
    tensors.second_moments.push_back(at::zeros({size}, options));
    tensors.steps.push_back(at::ones({}, options));
  }
  return tensors;
}

// In the first step the corrected moments are the gradient g and its square, so the update is the
// learning rate times g / (|g| + epsilon).
TEST_CASE("adamw moves each value by almost the learning rate in the first step") {
  const at::NoGradGuard no_grad;
  const fused::AdamWTensors tensors = adamw_tensors({1, 100, 0, 40'000}, at::kCPU);
  std::vector<at::Tensor> expected;
  for (std::size_t i = 0; i < tensors.values.size(); ++i) {
    const at::Tensor gradient = tensors.gradients[i].to(at::kFloat);
    expected.push_back(tensors.values[i] * (1 - 1e-4) - 1e-2 * gradient / (gradient.abs() + 1e-8));
  }
  OpStream stream;
  {
    const OpModeGuard guard(&stream);
    fused::adamw(tensors, kSettings);
  }
  CHECK(stream.names() == std::vector<std::string>{"rematch::adamw_"});
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (expected[i].numel() == 0) continue;
    CHECK((tensors.values[i] - expected[i]).abs().max().item<float>() < 1e-5);
    CHECK(at::equal(tensors.parameters[i], tensors.values[i].to(at::kBFloat16)));
    CHECK(tensors.parameters[i]._version() > 0);
  }
}

TEST_CASE("adamw updates more parameters than one table holds") {
  const at::NoGradGuard no_grad;
  const std::vector<std::int64_t> sizes(2 * kernels::kMaxAdamWTensors + 1, 20);
  const fused::AdamWTensors tensors = adamw_tensors(sizes, at::kCPU);
  fused::adamw(tensors, kSettings);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    CHECK(tensors.second_moments[i].min().item<float>() > 0);
    CHECK(at::equal(tensors.parameters[i], tensors.values[i].to(at::kBFloat16)));
  }
}

TEST_CASE("adamw does nothing on meta") {
  const at::NoGradGuard no_grad;
  CHECK_NOTHROW(fused::adamw(adamw_tensors({3, 5}, at::kMeta), kSettings));
}

TEST_CASE("adamw rejects tensors that do not fit") {
  const at::NoGradGuard no_grad;
  fused::AdamWTensors tensors = adamw_tensors({8}, at::kCPU);
  tensors.gradients[0] = at::randn({7});
  CHECK_THROWS_WITH(fused::adamw(tensors, kSettings), Catch::Contains("a gradient must be"));
  tensors = adamw_tensors({8}, at::kCPU);
  tensors.first_moments[0] = tensors.first_moments[0].to(at::kDouble);
  CHECK_THROWS_WITH(fused::adamw(tensors, kSettings), Catch::Contains("values and moments"));
  tensors = adamw_tensors({8}, at::kCPU);
  tensors.parameters[0] = at::randn({8});
  CHECK_THROWS_WITH(fused::adamw(tensors, kSettings), Catch::Contains("its own value"));
  tensors = adamw_tensors({8}, at::kCPU);
  tensors.steps.clear();
  CHECK_THROWS_WITH(fused::adamw(tensors, kSettings), Catch::Contains("all lists must have 1"));
  const at::AutoGradMode grad_mode(true);
  CHECK_THROWS_WITH(fused::adamw(adamw_tensors({8}, at::kCPU), kSettings),
                    Catch::Contains("at::NoGradGuard"));
}

}  // namespace
}  // namespace rematch::testing
