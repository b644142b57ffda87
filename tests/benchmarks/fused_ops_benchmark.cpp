// Compares forward and backward of each fused op with the ATen ops that it replaces, on the CPU, in
// alternating runs. Large sizes come from a block of a 1B model at 512 tokens, and exceed the
// caches. Small sizes come from the small presets.
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/chunk.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/zeros.h>
#include <benchmark/benchmark.h>
#include <torch/csrc/autograd/autograd.h>

#include <functional>
#include <string>
#include <vector>

#include "kernels/fused/adamw.h"
#include "kernels/fused/bias_gelu.h"
#include "kernels/fused/gated_add.h"
#include "kernels/fused/layer_norm.h"
#include "kernels/fused/linear_cross_entropy.h"
#include "kernels/fused/modulate.h"
#include "kernels/fused/rms_norm.h"
#include "kernels/fused/rms_norm_rope.h"
#include "kernels/fused/silu_mul.h"
#include "models/layers/norm.h"
#include "models/layers/rotary.h"
#include "tests/benchmarks/rows.h"
#include "tests/benchmarks/turns.h"

namespace rematch::benchmarks {
namespace {

constexpr int kNumSweeps = 36;
constexpr double kEps = 1e-5;

using Tensors = std::vector<at::Tensor>;

struct Case {
  std::string name;
  std::function<at::Tensor(const Tensors&, Ops)> run;
  std::function<Tensors(at::ScalarType)>
      make_inputs;  // sets requires_grad on the differentiable inputs
  int repetitions = 1;
};

at::Tensor leaf(at::IntArrayRef sizes, at::ScalarType dtype) {
  return at::randn(sizes).to(dtype).requires_grad_(true);
}

at::Tensor normalise(const Tensors& inputs, Ops ops) {
  return rms_norm(inputs[0], inputs[1], kEps, ops);
}

// The sum of both results stands for the two branches that use them.
at::Tensor add_and_normalise(const Tensors& inputs, Ops ops) {
  if (ops == Ops::kFused) {
    const auto [norm, sum] = fused::add_rms_norm(inputs[0], inputs[1], inputs[2], kEps);
    return at::add(norm, sum);
  }
  const at::Tensor sum = at::add(inputs[0], inputs[1]);
  return at::add(rms_norm(sum, inputs[2], kEps), sum);
}

// Wan's adaptive layer norm, with float32 tables.
at::Tensor modulate_norm(const Tensors& inputs, Ops ops) {
  if (ops == Ops::kFused) {
    return fused::layer_norm(inputs[0], inputs[1], inputs[2], /*offset=*/1, kEps);
  }
  at::Tensor result = layer_norm_float32(inputs[0], at::Tensor(), at::Tensor(), kEps);
  result = result * (inputs[1] + 1) + inputs[2];
  return result.to(inputs[0].scalar_type());
}

at::Tensor normalise_layer(const Tensors& inputs, Ops ops) {
  return layer_norm(inputs[0], inputs[1], inputs[2], kEps, ops);
}

// Wan's gated residual, with a float32 gate.
at::Tensor add_gated(const Tensors& inputs, Ops ops) {
  if (ops == Ops::kFused) return fused::gated_add(inputs[0], inputs[1], inputs[2]);
  const at::Tensor branch = inputs[1].to(at::kFloat) * inputs[2];
  return (inputs[0].to(at::kFloat) + branch).to(inputs[0].scalar_type());
}

// Eager linears add the bias inside of their matmul, so the add is not part of this comparison. The
// gradient of the bias is.
at::Tensor add_bias_and_gelu(const Tensors& inputs, Ops ops) {
  if (ops == Ops::kFused) return fused::bias_gelu(inputs[0], inputs[1]);
  return at::gelu(inputs[0] + inputs[1], "tanh");
}

at::Tensor modulate(const Tensors& inputs, Ops ops) {
  if (ops == Ops::kFused) {
    return fused::modulate(inputs[0], inputs[1], inputs[2], inputs[0].scalar_type());
  }
  const at::Tensor factor = inputs[2] + 1;
  return inputs[0] * factor + inputs[1];
}

at::Tensor rotate(const Tensors& inputs, Ops ops) {
  return apply_rotary(inputs[0], {inputs[1], inputs[2]}, ops);
}

at::Tensor normalise_and_rotate(const Tensors& inputs, Ops ops) {
  const at::Tensor& x = inputs[0];
  if (ops == Ops::kFused) {
    return fused::rms_norm_rope(x, inputs[1], inputs[2], inputs[3], kEps);
  }
  const at::Tensor norm = rms_norm(x, inputs[1], kEps);
  const std::int64_t head = 2 * inputs[2].size(2);
  const at::Tensor heads = norm.view({x.size(0), x.size(1), x.size(2) / head, head});
  return apply_rotary(heads, {inputs[2], inputs[3]}).view(x.sizes());
}

at::Tensor packed_gate(const Tensors& inputs, Ops ops) {
  if (ops == Ops::kFused) return fused::packed_silu_mul(inputs[0]);
  const Tensors halves = at::chunk(inputs[0], 2, -1);
  return at::mul(at::silu(halves[0]), halves[1]);
}

at::Tensor gate(const Tensors& inputs, Ops ops) {
  if (ops == Ops::kFused) return fused::silu_mul(inputs[0], inputs[1]);
  return at::mul(at::silu(inputs[0]), inputs[1]);
}

at::Tensor loss(const Tensors& inputs, Ops ops) {
  if (ops == Ops::kFused) {
    return fused::linear_cross_entropy(inputs[0], inputs[1], inputs[2],
                                       fused::logits_for(inputs[0], inputs[1]));
  }
  return at::cross_entropy_loss(at::linear(inputs[0], inputs[1]).to(at::kFloat), inputs[2]);
}

Tensors loss_inputs(std::int64_t tokens, std::int64_t width, std::int64_t classes,
                    at::ScalarType dtype) {
  return {leaf({tokens, width}, dtype), leaf({classes, width}, dtype),
          at::randint(classes, {tokens}, at::TensorOptions().dtype(at::kLong))};
}

std::vector<Case> cases() {
  using Type = at::ScalarType;
  return {
      {"rms_norm [512, 2048]", normalise,
       [](Type type) {
         return Tensors{leaf({512, 2048}, type), leaf({2048}, type)};
       }},
      {"rms_norm [256, 128]", normalise,
       [](Type type) {
         return Tensors{leaf({256, 128}, type), leaf({128}, type)};
       },
       8},
      {"add_rms_norm [512, 2048]", add_and_normalise,
       [](Type type) {
         return Tensors{leaf({512, 2048}, type), leaf({512, 2048}, type), leaf({2048}, type)};
       }},
      {"add_rms_norm [256, 128]", add_and_normalise,
       [](Type type) {
         return Tensors{leaf({256, 128}, type), leaf({256, 128}, type), leaf({128}, type)};
       },
       8},
      {"layer_norm, modulated [1, 512, 2048]", modulate_norm,
       [](Type type) {
         return Tensors{leaf({1, 512, 2048}, type), leaf({1, 1, 2048}, at::kFloat),
                        leaf({1, 1, 2048}, at::kFloat)};
       }},
      {"layer_norm, modulated [2, 128, 96]", modulate_norm,
       [](Type type) {
         return Tensors{leaf({2, 128, 96}, type), leaf({2, 1, 96}, at::kFloat),
                        leaf({2, 1, 96}, at::kFloat)};
       },
       8},
      {"layer_norm, weighted [512, 2048]", normalise_layer,
       [](Type type) {
         return Tensors{leaf({512, 2048}, type), leaf({2048}, type), leaf({2048}, type)};
       }},
      {"layer_norm, weighted [256, 96]", normalise_layer,
       [](Type type) {
         return Tensors{leaf({256, 96}, type), leaf({96}, type), leaf({96}, type)};
       },
       8},
      {"bias_gelu [512, 8960]", add_bias_and_gelu,
       [](Type type) {
         return Tensors{leaf({512, 8960}, type), leaf({8960}, type)};
       }},
      {"bias_gelu [256, 384]", add_bias_and_gelu,
       [](Type type) {
         return Tensors{leaf({256, 384}, type), leaf({384}, type)};
       },
       8},
      {"gated_add [1, 512, 2048]", add_gated,
       [](Type type) {
         return Tensors{leaf({1, 512, 2048}, type), leaf({1, 512, 2048}, type),
                        leaf({1, 1, 2048}, at::kFloat)};
       }},
      {"gated_add [2, 128, 96]", add_gated,
       [](Type type) {
         return Tensors{leaf({2, 128, 96}, type), leaf({2, 128, 96}, type),
                        leaf({2, 1, 96}, at::kFloat)};
       },
       8},
      {"modulate [1, 512, 2048]", modulate,
       [](Type type) {
         return Tensors{leaf({1, 512, 2048}, type), leaf({1, 1, 2048}, type),
                        leaf({1, 1, 2048}, type)};
       }},
      {"modulate [2, 128, 96]", modulate,
       [](Type type) {
         return Tensors{leaf({2, 128, 96}, type), leaf({2, 1, 96}, type), leaf({2, 1, 96}, type)};
       },
       8},
      {"rope [1, 512, 32, 64]", rotate,
       [](Type type) {
         return Tensors{leaf({1, 512, 32, 64}, type), at::randn({512, 1, 32}),
                        at::randn({512, 1, 32})};
       }},
      {"rope [2, 128, 4, 32]", rotate,
       [](Type type) {
         return Tensors{leaf({2, 128, 4, 32}, type), at::randn({128, 1, 16}),
                        at::randn({128, 1, 16})};
       },
       8},
      {"rms_norm_rope [1, 512, 1536], heads of 128", normalise_and_rotate,
       [](Type type) {
         return Tensors{leaf({1, 512, 1536}, type), leaf({1536}, type), at::randn({512, 1, 64}),
                        at::randn({512, 1, 64})};
       }},
      {"rms_norm_rope [2, 128, 96], heads of 24", normalise_and_rotate,
       [](Type type) {
         return Tensors{leaf({2, 128, 96}, type), leaf({96}, type), at::randn({128, 1, 12}),
                        at::randn({128, 1, 12})};
       },
       8},
      {"packed silu_mul [512, 2 x 8192]", packed_gate,
       [](Type type) {
         return Tensors{leaf({512, 2 * 8192}, type)};
       }},
      {"packed silu_mul [256, 2 x 352]", packed_gate,
       [](Type type) {
         return Tensors{leaf({256, 2 * 352}, type)};
       },
       8},
      {"silu_mul [512, 8192]", gate,
       [](Type type) {
         return Tensors{leaf({512, 8192}, type), leaf({512, 8192}, type)};
       }},
      {"silu_mul [256, 352]", gate,
       [](Type type) {
         return Tensors{leaf({256, 352}, type), leaf({256, 352}, type)};
       },
       8},
      {"linear_cross_entropy [512, 128] x 32000", loss,
       [](Type type) { return loss_inputs(512, 128, 32'000, type); }},
      {"linear_cross_entropy [256, 128] x 256", loss,
       [](Type type) { return loss_inputs(256, 128, 256, type); }, 8},
      {"linear_cross_entropy [256, 1024] x 16000", loss,
       [](Type type) { return loss_inputs(256, 1024, 16'000, type); }},
  };
}

void step(const Case& which, const Tensors& inputs, Ops ops) {
  const at::Tensor out = which.run(inputs, ops);
  Tensors differentiated;
  for (const at::Tensor& input : inputs) {
    if (input.requires_grad()) differentiated.push_back(input);
  }
  torch::autograd::grad({out}, differentiated, {out.detach()});
}

void compare(benchmark::State& state, const Case& which, at::ScalarType dtype) {
  const Tensors inputs = which.make_inputs(dtype);
  Turns turns(which.repetitions);
  const std::size_t eager = turns.add([&] { step(which, inputs, Ops::kEager); });
  const std::size_t fused = turns.add([&] { step(which, inputs, Ops::kFused); });
  for (auto _ : state) turns.sweep();
  const Estimate ratio = turns.ratio(fused, eager);
  state.counters["fused / eager"] = ratio.value;
  add_row({"fused", which.name + ", " + c10::toString(dtype), "x", ratio, 1.0, {}, true});
}

// bfloat16 parameters with float32 masters and moments, as the optimizer of a training step has.
struct Parameters {
  explicit Parameters(std::int64_t num, at::IntArrayRef sizes) {
    for (std::int64_t i = 0; i < num; ++i) {
      const at::Tensor value = at::randn(sizes);
      tensors.parameters.push_back(value.to(at::kBFloat16));
      tensors.gradients.push_back(at::randn(sizes).to(at::kBFloat16));
      tensors.values.push_back(value);
      tensors.first_moments.push_back(at::zeros(sizes));
      tensors.second_moments.push_back(at::zeros(sizes));
      tensors.steps.push_back(at::zeros({}));
    }
  }
  fused::AdamWTensors tensors;
};

constexpr fused::AdamWSettings kAdamW = {1e-3, 0.9, 0.95, 1e-8, 0.01};

// LibTorch's op needs a float32 gradient, and leaves the rounding to a copy.
void update(Parameters& parameters, Ops ops) {
  fused::AdamWTensors& tensors = parameters.tensors;
  if (ops == Ops::kFused) {
    at::_foreach_add_(tensors.steps, 1.0);
    fused::adamw(tensors, kAdamW);
    return;
  }
  for (std::size_t i = 0; i < tensors.parameters.size(); ++i) {
    const std::vector<at::Tensor> step = {tensors.steps[i]};
    at::_foreach_add_(step, 1.0);
    at::_fused_adamw_({tensors.values[i]}, {tensors.gradients[i].to(at::kFloat)},
                      {tensors.first_moments[i]}, {tensors.second_moments[i]},
                      /*max_exp_avg_sqs=*/{}, step, kAdamW.learning_rate, kAdamW.beta1,
                      kAdamW.beta2, kAdamW.weight_decay, kAdamW.epsilon, /*amsgrad=*/false,
                      /*maximize=*/false);
    tensors.parameters[i].copy_(tensors.values[i]);
  }
}

void compare_updates(benchmark::State& state, std::int64_t num, std::int64_t width) {
  const at::NoGradGuard no_grad;
  Parameters parameters(num, {width, width});
  Turns turns(width < 1024 ? 8 : 1);
  const std::size_t eager = turns.add([&] { update(parameters, Ops::kEager); });
  const std::size_t fused = turns.add([&] { update(parameters, Ops::kFused); });
  for (auto _ : state) turns.sweep();
  const Estimate ratio = turns.ratio(fused, eager);
  state.counters["fused / eager"] = ratio.value;
  const std::string name =
      std::to_string(num) + " x [" + std::to_string(width) + ", " + std::to_string(width) + "]";
  add_row({"fused", "adamw " + name + ", BFloat16", "x", ratio, 1.0, {}, true});
}

}  // namespace
}  // namespace rematch::benchmarks

int main(int argc, char** argv) {
  using namespace rematch::benchmarks;
  at::set_num_threads(1);
  for (const Case& which : cases()) {
    for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
      const std::string name = "fused/" + which.name + "/" + c10::toString(dtype);
      benchmark::RegisterBenchmark(name.c_str(), compare, which, dtype)
          ->Iterations(kNumSweeps)
          ->Unit(benchmark::kMillisecond);
    }
  }
  benchmark::RegisterBenchmark("fused/adamw 4 x [2048, 2048]/BFloat16", compare_updates, 4, 2048)
      ->Iterations(kNumSweeps)
      ->Unit(benchmark::kMillisecond);
  benchmark::RegisterBenchmark("fused/adamw 40 x [128, 128]/BFloat16", compare_updates, 40, 128)
      ->Iterations(kNumSweeps)
      ->Unit(benchmark::kMillisecond);
  return run_benchmarks(argc, argv);
}
