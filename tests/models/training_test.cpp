#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <cmath>

#include "models/data/shapes.h"
#include "models/data/text.h"
#include "tests/models/model_checks.h"
#include "tests/support/catch.h"

using namespace rematch;

namespace {

constexpr std::int64_t kNumSteps = 100;
constexpr std::int64_t kLastSteps = 20;  // the final loss is the mean over the last steps

class Optimizer {
 public:
  explicit Optimizer(const Model& model) {
    for (const NamedTensor& parameter : model.parameters()) {
      parameters_.push_back(parameter.tensor.detach());
      leaves_.push_back(parameter.tensor);
      first_.push_back(at::zeros_like(parameters_.back()));
      second_.push_back(at::zeros_like(parameters_.back()));
      steps_.push_back(at::zeros({}));
    }
  }

  void step(double learning_rate) {
    std::vector<at::Tensor> gradients;
    for (at::Tensor& leaf : leaves_) gradients.push_back(leaf.grad());
    at::_foreach_add_(steps_, 1.0);
    at::_fused_adamw_(parameters_, gradients, first_, second_, {}, steps_, learning_rate,
                      /*beta1=*/0.9, /*beta2=*/0.95, /*weight_decay=*/0.0, /*eps=*/1e-8,
                      /*amsgrad=*/false, /*maximize=*/false);
    for (at::Tensor& leaf : leaves_) leaf.mutable_grad().reset();
  }

 private:
  std::vector<at::Tensor> parameters_, leaves_, first_, second_, steps_;
};

struct Ends {
  double first, last;
};

Ends train(const ModelSpec& spec, std::int64_t num_steps, double learning_rate) {
  at::set_num_threads(1);  // ctest runs one test per core; more threads would wait for each other
  const auto model = make_model(spec, at::kCPU);
  const auto data = make_data(spec, "", 1, at::kCPU);
  Optimizer optimizer(*model);
  Ends ends{0.0, 0.0};
  for (std::int64_t step = 0; step < num_steps; ++step) {
    const at::Tensor loss = model->loss(data->batch(step));
    loss.backward();
    optimizer.step(learning_rate);
    if (step == 0) ends.first = loss.item<double>();
    if (step >= num_steps - kLastSteps) ends.last += loss.item<double>() / kLastSteps;
  }
  return ends;
}

}  // namespace

TEST_CASE("a small Llama learns from context and ends below the text's unigram entropy") {
  const ModelSpec spec = spec_of(
      "llama_small", {{"layers", 2}, {"dim", 64}, {"ffn", 176}, {"batch", 8}, {"tokens", 32}});
  const Ends loss = train(spec, kNumSteps, 3e-3);
  CHECK(loss.first == Approx(std::log(256.0)).margin(0.5));  // an untrained model predicts all
                                                             // bytes with equal probability
  CHECK(loss.last < unigram_byte_entropy(shipped_text()));
}

TEST_CASE("a small DiT learns from its input and ends below the best constant predictor") {
  const ModelSpec spec = spec_of(
      "wan_small",
      {{"layers", 2}, {"dim", 64}, {"ffn", 128}, {"batch", 8}, {"tokens", 32}, {"text_tokens", 4}});
  const Ends loss = train(spec, kNumSteps, 3e-3);
  const auto data = make_data(spec, "", 1, at::kCPU);
  std::vector<Batch> batches;
  for (std::int64_t step = kNumSteps - kLastSteps; step < kNumSteps; ++step)
    batches.push_back(data->batch(step));
  CHECK(loss.last < best_constant_predictor_loss(batches));
}
