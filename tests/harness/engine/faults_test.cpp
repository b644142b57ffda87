// Tests that the gate detects planted faults. Each fault is a known bug of other checkpointing
// code. The test plants it in the engine, or in the independent implementation of
// tests/support/closure_checkpoint.h. Every tier of the gate must detect the fault, and tier T0
// must detect it by step 2. To print a table of the results:
// build/dev/tests/harness/engine/faults_test '[table]'
#include <ATen/Functions.h>
#include <ATen/autocast_mode.h>

#include <cstdio>
#include <random>

#include "harness/engine/fault.h"
#include "harness/measure/hash.h"
#include "reports/gate/loss_checks.h"
#include "tests/support/catch.h"
#include "tests/support/networks.h"
#include "tests/support/strict.h"

namespace rematch::testing {
namespace {

constexpr int kSteps = 30;
constexpr int kLayers = 4;
constexpr std::int64_t kTokens = 6;
constexpr std::int64_t kDim = 8;

using Layer =
    std::function<at::Tensor(const at::Tensor& x, const at::Tensor& w, const at::Tensor& buffer)>;

struct PlantedFault {
  const char* name;
  Fault engine = Fault::kNoFault;
  // The fault in the independent implementation. kNoFault means that the fault is in the engine.
  ClosureFault closure = ClosureFault::kNoFault;
  Layer layer;
  bool keep_all = false;  // the plan keeps every result that can be kept
  int micro_batches = 1;
  bool autocast = false;

  bool in_engine() const { return closure == ClosureFault::kNoFault; }
};

at::Tensor dropout_layer(const at::Tensor& x, const at::Tensor& w, const at::Tensor&) {
  return x + at::dropout(at::mm(x, w).sin(), 0.2, true);
}
at::Tensor plain_layer(const at::Tensor& x, const at::Tensor& w, const at::Tensor&) {
  return x + at::tanh(at::mm(x, w));
}
at::Tensor in_place_layer(const at::Tensor& x, const at::Tensor& w, const at::Tensor&) {
  at::Tensor y = at::mm(x, w);
  const at::Tensor before = y + 1.0;
  y.add_(x);
  return x + before.sin() * y.cos();
}
// Subtracts a moving mean, as normalizations with running statistics do.
at::Tensor buffer_layer(const at::Tensor& x, const at::Tensor& w, const at::Tensor& mean) {
  const at::Tensor y = at::mm(x, w);
  const at::Tensor centred = y - mean.clone();
  at::NoGradGuard no_grad;
  mean.mul_(0.9).add_(y.detach().mean(0), 0.1);
  at::AutoGradMode grad(true);
  return x + at::tanh(centred);
}
// A gate without a gradient, as in routers. If recompute runs the gate without autocast, autograd's
// checks cannot notice, because no saved shape or dtype changes.
at::Tensor gated_layer(const at::Tensor& x, const at::Tensor& w, const at::Tensor&) {
  return x + (x * w.sum(0)).tanh() * at::sigmoid(at::mm(x.detach(), w.detach()));
}

const std::vector<PlantedFault>& faults() {
  static const std::vector<PlantedFault> all = {
      {.name = "generator not restored",
       .engine = Fault::kGeneratorNotRestored,
       .layer = dropout_layer},
      {.name = "another layer's input kept",
       .engine = Fault::kOtherLayersInput,
       .layer = plain_layer},
      {.name = "stale value after an in-place update",
       .engine = Fault::kStaleValue,
       .layer = in_place_layer,
       .keep_all = true},
      {.name = "buffer updated twice",
       .closure = ClosureFault::kBufferTwice,
       .layer = buffer_layer},
      {.name = "autocast lost in recompute",
       .closure = ClosureFault::kAutocastLost,
       .layer = gated_layer,
       .autocast = true},
      {.name = "gradient accumulation dropped",
       .closure = ClosureFault::kGradientsDropped,
       .layer = plain_layer,
       .micro_batches = 2},
  };
  return all;
}

// Trains a few layers by gradient descent. `noise` imitates kernels that add numbers in varying
// order.
class Trainer {
 public:
  Trainer(const PlantedFault& what, std::uint32_t noise_seed, double noise)
      : what_(what), noise_(noise), noise_bits_(noise_seed) {
    seed_generator();
    for (int layer = 0; layer < kLayers; ++layer) {
      network_.parameters.push_back(at::randn({kDim, kDim}).mul(0.3).requires_grad_());
      buffers_.push_back(at::zeros({kDim}));
      network_.layers.push_back([this, layer](const at::Tensor& x) {
        return what_.layer(x, network_.parameters[static_cast<std::size_t>(layer)],
                           buffers_[static_cast<std::size_t>(layer)]);
      });
    }
  }

  using Forward = std::function<at::Tensor(const Network&)>;

  Steps train(const Forward& forward) {
    Steps steps;
    for (int step = 0; step < kSteps; ++step) {
      StepRecord record;
      double loss = 0;
      for (int batch = 0; batch < what_.micro_batches; ++batch) {
        std::mt19937 bits(static_cast<std::uint32_t>(step * what_.micro_batches + batch));
        network_.input = input(bits);
        const at::Tensor own = loss_of(run(forward)).div(kTokens * kDim);
        own.backward();
        loss += own.item<double>();
      }
      record.loss = loss;
      record.loss_bits = bits_of(loss);
      record.gradient_norm_bits = bits_of(update());
      record.parameter_hash = tensors_hash(state());
      record.generator_hash = generator_hash(at::kCPU);
      steps.push_back(record);
    }
    return steps;
  }

  const std::vector<at::Tensor>& buffers() const { return buffers_; }
  const std::vector<at::Tensor>& parameters() const { return network_.parameters; }

 private:
  static at::Tensor input(std::mt19937& bits) {
    std::vector<float> values(kTokens * kDim);
    for (float& value : values) value = std::normal_distribution<float>()(bits);
    return at::tensor(values).view({kTokens, kDim}).requires_grad_();
  }

  at::Tensor run(const Forward& forward) const {
    at::autocast::set_autocast_enabled(at::kCPU, what_.autocast);
    at::Tensor output = forward(network_);
    at::autocast::set_autocast_enabled(at::kCPU, false);
    at::autocast::clear_cache();
    return output;
  }

  // Runs gradient descent and returns the norm of all gradients.
  double update() {
    at::NoGradGuard no_grad;
    double squares = 0;
    for (at::Tensor& parameter : network_.parameters) {
      const at::Tensor gradient = parameter.grad();
      if (!gradient.defined()) continue;
      squares += gradient.to(at::kDouble).pow(2).sum().item<double>();
      const double wrong = noise_ * std::normal_distribution<double>()(noise_bits_);
      parameter.sub_(gradient, 0.05 * (1 + wrong));
      parameter.mutable_grad().reset();
    }
    return std::sqrt(squares);
  }

  std::vector<at::Tensor> state() const {
    std::vector<at::Tensor> tensors = network_.parameters;
    tensors.insert(tensors.end(), buffers_.begin(), buffers_.end());
    return tensors;
  }

  const PlantedFault& what_;
  double noise_;
  std::mt19937 noise_bits_;
  Network network_;
  std::vector<at::Tensor> buffers_;
};

Steps train_plain(const PlantedFault& what, std::uint32_t noise_seed, double noise) {
  return Trainer(what, noise_seed, noise).train(forward_plain);
}

Steps train_engine(const PlantedFault& what, bool faulty, std::uint32_t noise_seed, double noise) {
  plant(Fault::kNoFault);
  const NamedNetwork shape = {what.name, [&] {
                                Network network;
                                network.input = at::randn({kTokens, kDim}).requires_grad_();
                                for (int layer = 0; layer < kLayers; ++layer) {
                                  const at::Tensor w = at::randn({kDim, kDim}).requires_grad_();
                                  network.parameters.push_back(w);
                                  network.layers.push_back([&what, w](const at::Tensor& x) {
                                    return what.layer(x, w, {});
                                  });
                                }
                                return network;
                              }};
  const Plan plan = plan_of_blocks(trace_of(shape), [&](int, int) { return what.keep_all; });
  const Checkpoint checkpoint = strict(plan, Schedule::kOnDemand);
  Trainer trainer(what, noise_seed, noise);
  plant(faulty ? what.engine : Fault::kNoFault);
  Steps steps = trainer.train([&](const Network& network) {
    Recording recording(checkpoint);
    const at::Tensor output = forward_with_scopes(network);
    recording.finish();
    return output;
  });
  plant(Fault::kNoFault);
  return steps;
}

Steps train_closures(const PlantedFault& what, bool faulty, std::uint32_t noise_seed,
                     double noise) {
  Trainer trainer(what, noise_seed, noise);
  ClosurePolicy policy;
  policy.buffers = trainer.buffers();
  policy.parameters = trainer.parameters();
  if (faulty) policy.fault = what.closure;
  return trainer.train([&](const Network& network) { return forward_closures(network, policy); });
}

Steps train(const PlantedFault& what, bool faulty, std::uint32_t noise_seed = 0, double noise = 0) {
  return what.in_engine() ? train_engine(what, faulty, noise_seed, noise)
                          : train_closures(what, faulty, noise_seed, noise);
}

// Imitates kernels that add numbers in varying order: each step varies by a millionth between runs.
constexpr double kNoise = 1e-6;
constexpr int kRuns = 4;

LossArm noisy_reference(const PlantedFault& what) {
  LossArm arm{{}, "none", false};
  for (std::uint32_t run = 0; run < kRuns; ++run) {
    arm.runs.push_back(train_plain(what, run + 1, kNoise));
  }
  return arm;
}

LossArm noisy_candidate(const PlantedFault& what, bool faulty) {
  LossArm arm{{}, "full", false};
  for (std::uint32_t run = 0; run < kRuns; ++run) {
    arm.runs.push_back(train(what, faulty, 100 + run, kNoise));
  }
  return arm;
}

CheckRecord bitwise(const PlantedFault& what, bool faulty) {
  return check_bitwise({{train(what, faulty)}, "full", true},
                       {{train_plain(what, 0, 0), train_plain(what, 0, 0)}, "none", true});
}

CheckRecord envelope(const PlantedFault& what, bool faulty) {
  LossArm candidate = noisy_candidate(what, faulty);
  candidate.runs.resize(1);
  return check_envelope(candidate, noisy_reference(what));
}

CheckRecord equivalence(const PlantedFault& what, bool faulty) {
  return check_equivalence(noisy_candidate(what, faulty), noisy_reference(what), std::nullopt,
                           std::nullopt);
}

}  // namespace

TEST_CASE("without the planted fault the runs pass every tier") {
  for (const PlantedFault& fault : faults()) {
    CAPTURE(fault.name);
    const CheckRecord bits = bitwise(fault, false);
    CAPTURE(bits.reason);
    CHECK(bits.verdict == GateVerdict::kPass);
    CHECK(envelope(fault, false).verdict == GateVerdict::kPass);
    CHECK(equivalence(fault, false).verdict == GateVerdict::kPass);
  }
}

TEST_CASE("T0 detects each planted fault by the second step") {
  for (const PlantedFault& fault : faults()) {
    CAPTURE(fault.name);
    const CheckRecord bits = bitwise(fault, true);
    CAPTURE(bits.reason);
    CHECK(bits.verdict == GateVerdict::kFail);
    CHECK(bits.first_different_step.value_or(kSteps) <= 1);
  }
}

TEST_CASE("T1 and T2 detect each planted fault despite the noise of the reference") {
  for (const PlantedFault& fault : faults()) {
    CAPTURE(fault.name);
    CHECK(envelope(fault, true).verdict == GateVerdict::kFail);
    CHECK(equivalence(fault, true).verdict == GateVerdict::kFail);
  }
}

TEST_CASE("prints the table of faults", "[.table]") {
  std::printf(
      "| fault | planted in | T0: first differs | T1: largest difference / envelope | T2 |\n");
  std::printf("| --- | --- | --- | --- | --- |\n");
  for (const PlantedFault& fault : faults()) {
    const CheckRecord bits = bitwise(fault, true);
    const CheckRecord within = envelope(fault, true);
    const CheckRecord means = equivalence(fault, true);
    std::printf("| %s | %s | %s: step %d, %s | %s: %.2g / %.2g | %s: %.2g, margin %.2g |\n",
                fault.name, fault.in_engine() ? "engine" : "closure oracle",
                std::string(to_string(bits.verdict)).c_str(),
                bits.first_different_step.value_or(-1) + 1, bits.first_different_tensor.c_str(),
                std::string(to_string(within.verdict)).c_str(), within.measured.value_or(0),
                within.limit.value_or(0), std::string(to_string(means.verdict)).c_str(),
                means.measured.value_or(0), means.limit.value_or(0));
  }
}

}  // namespace rematch::testing
