// Compares the CUDA kernels of the fused ops with the CPU kernels in double.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <torch/csrc/autograd/autograd.h>

#include <string>

#include "kernels/fused/adamw.h"
#include "kernels/fused/bias_gelu.h"
#include "kernels/fused/gated_add.h"
#include "kernels/fused/layer_norm.h"
#include "kernels/fused/linear_cross_entropy.h"
#include "kernels/fused/modulate.h"
#include "kernels/fused/rms_norm.h"
#include "kernels/fused/rms_norm_rope.h"
#include "kernels/fused/rope.h"
#include "kernels/fused/silu_mul.h"
#include "tests/support/cuda.h"

namespace rematch {
namespace {

using Tensors = std::vector<at::Tensor>;
using Function = at::Tensor (*)(const Tensors&);

struct Case {
  const char* name;
  Function function;
  std::vector<std::vector<std::int64_t>> sizes;  // sizes of the inputs that get a gradient
  Tensors constants = {};                        // further inputs, without a gradient
};

// The widths are not divisible by the number of threads in a block, and there are more than
// kRowsInBlock rows.
std::vector<Case> cases() {
  const auto angle = at::randn({5, 1, 9});
  return {
      {"rms_norm",
       [](const Tensors& in) { return fused::rms_norm(in[0], in[1], 1e-5); },
       {{70, 300}, {300}}},
      {"add_rms_norm",
       [](const Tensors& in) {
         const auto [norm, sum] = fused::add_rms_norm(in[0], in[1], in[2], 1e-5);
         return norm + sum;
       },
       {{70, 300}, {70, 300}, {300}}},
      {"layer_norm",
       [](const Tensors& in) { return fused::layer_norm(in[0], in[1], in[2], 1, 1e-6); },
       {{2, 70, 300}, {2, 1, 300}, {2, 1, 300}}},
      {"bias_gelu",
       [](const Tensors& in) { return fused::bias_gelu(in[0], in[1]); },
       {{140, 300}, {300}}},
      {"gated_add",
       [](const Tensors& in) { return fused::gated_add(in[0], in[1], in[2]); },
       {{2, 70, 300}, {2, 70, 300}, {2, 1, 300}}},
      {"modulate",
       [](const Tensors& in) { return fused::modulate(in[0], in[1], in[2], in[0].scalar_type()); },
       {{2, 70, 300}, {2, 1, 300}, {2, 1, 300}}},
      {"rope",
       [](const Tensors& in) { return fused::rope(in[0], in[1], in[2]); },
       {{2, 5, 3, 18}},
       {angle.cos(), angle.sin()}},
      {"rms_norm_rope",
       [](const Tensors& in) { return fused::rms_norm_rope(in[0], in[1], in[2], in[3], 1e-5); },
       {{14, 5, 54}, {54}},
       {angle.cos(), angle.sin()}},
      {"packed_silu_mul",
       [](const Tensors& in) { return fused::packed_silu_mul(in[0]); },
       {{7, 600}}},
      {"silu_mul",
       [](const Tensors& in) { return fused::silu_mul(in[0], in[1]); },
       {{7, 300}, {7, 300}}},
      {"linear_cross_entropy",
       [](const Tensors& in) { return fused::linear_cross_entropy(in[0], in[1], in[2]); },
       {{2100, 16}, {600, 16}},
       {at::randint(600, {2100}, at::TensorOptions().dtype(at::kLong))}}};
}

// Returns the output, then the gradients.
Tensors run(const Case& which, const Tensors& values, at::ScalarType dtype, at::Device device) {
  Tensors inputs;
  for (const at::Tensor& value : values) {
    inputs.push_back(value.to(dtype).to(device).requires_grad_(true));
  }
  const Tensors differentiated = inputs;
  for (const at::Tensor& constant : which.constants) inputs.push_back(constant.to(device));
  const at::Tensor out = which.function(inputs);
  Tensors results = torch::autograd::grad({out}, differentiated, {out.detach()});
  results.insert(results.begin(), out.detach());
  return results;
}

// `tolerance` is a few rounding errors of the dtype, relative to the largest element.
void check_case(const Case& which, at::ScalarType dtype, double tolerance) {
  CAPTURE(which.name, dtype);
  Tensors values;
  for (const auto& sizes : which.sizes) {
    values.push_back(at::randn(sizes).to(dtype).to(at::kDouble));
  }
  const Tensors expected = run(which, values, at::kDouble, at::kCPU);
  const Tensors found = run(which, values, dtype, at::kCUDA);
  const Tensors again = run(which, values, dtype, at::kCUDA);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CAPTURE(i);
    const at::Tensor difference = found[i].cpu().to(at::kDouble) - expected[i];
    const double largest = expected[i].abs().max().item<double>();
    CHECK(difference.abs().max().item<double>() <= tolerance * (1.0 + largest));
    CHECK(at::equal(found[i], again[i]));
  }
}

TEST_CASE("fused ops on CUDA agree with the CPU and are deterministic", "[gpu]") {
  REMATCH_NEEDS_GPU();
  for (const Case& which : cases()) {
    check_case(which, at::kFloat, 2e-5);
    check_case(which, at::kBFloat16, 3e-2);
    check_case(which, at::kDouble, 1e-12);
  }
}

// A row has one warp, two, four or eight, or does not fit into registers. More than kMaxSumBlocks
// blocks would be needed if each processed kRowsInBlock rows.
TEST_CASE("norms and modulation on CUDA are right at the widths of the models", "[gpu]") {
  REMATCH_NEEDS_GPU();
  for (Case& which : cases()) {
    const std::string name = which.name;
    if (name != "rms_norm" && name != "add_rms_norm" && name != "layer_norm" &&
        name != "modulate" && name != "gated_add") {
      continue;
    }
    for (const std::int64_t width : {1536, 2048, 4096, 8192, 8200}) {
      const std::int64_t rows = width == 1536 ? 9000 : 100;
      CAPTURE(width);
      for (auto& sizes : which.sizes) {
        sizes.back() = width;
        if (sizes.size() > 1 && sizes[sizes.size() - 2] > 1) sizes[sizes.size() - 2] = rows;
      }
      check_case(which, at::kBFloat16, 3e-2);
    }
  }
}

TEST_CASE("adamw on CUDA updates as on the CPU", "[gpu]") {
  REMATCH_NEEDS_GPU();
  const at::NoGradGuard no_grad;
  fused::AdamWTensors on_cpu, on_cuda;
  for (std::int64_t i = 0; i < 70; ++i) {  // more than one launch
    const auto tensor = [&](auto fused::AdamWTensors::*list, const at::Tensor& value) {
      (on_cpu.*list).push_back(value);
      (on_cuda.*list).push_back(value.to(at::kCUDA, /*non_blocking=*/false, /*copy=*/true));
    };
    const at::Tensor value = at::randn({100 * i + 1});
    tensor(&fused::AdamWTensors::values, value);
    tensor(&fused::AdamWTensors::parameters, value.to(at::kBFloat16));
    tensor(&fused::AdamWTensors::gradients, at::randn(value.sizes()).to(at::kBFloat16));
    tensor(&fused::AdamWTensors::first_moments, at::randn(value.sizes()));
    tensor(&fused::AdamWTensors::second_moments, at::randn(value.sizes()).abs());
    tensor(&fused::AdamWTensors::steps, at::ones({}));
  }
  const fused::AdamWSettings settings{1e-2, 0.9, 0.95, 1e-8, 0.01};
  fused::adamw(on_cpu, settings);
  fused::adamw(on_cuda, settings);
  for (std::size_t i = 0; i < on_cpu.values.size(); ++i) {
    CHECK(at::allclose(on_cuda.values[i].cpu(), on_cpu.values[i], 1e-5, 1e-6));
    CHECK(at::equal(on_cuda.parameters[i], on_cuda.values[i].to(at::kBFloat16)));
  }
}

}  // namespace
}  // namespace rematch
