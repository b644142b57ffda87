// Tests that a step of several micro-batches has the gradients of its micro-batches, added up.
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>

#include <map>
#include <string>
#include <variant>
#include <vector>

#include "harness/trace/tracer.h"
#include "harness/training/training.h"
#include "models/preset/preset.h"
#include "policies/catalogue/catalogue.h"
#include "policies/catalogue/resolve.h"
#include "tests/support/catch.h"

namespace rematch {
namespace {

TrainingSettings settings_of(const std::map<std::string, std::int64_t>& dimensions,
                             const char* dtype = "float32") {
  std::map<std::string, std::int64_t> all = {{"layers", 2}};
  all.insert(dimensions.begin(), dimensions.end());
  TrainingSettings settings;
  settings.model = std::get<ModelSpec>(make_spec("llama_small", all, dtype));
  settings.optimizer = OptimizerKind::kNothing;
  return settings;
}

class Gradients final : public StepListener {
 public:
  explicit Gradients(const Training& training) : training_(training) {}
  void before_next_micro_batch() override { ++num_later; }
  void after_backward() override {
    for (const NamedTensor& parameter : training_.parameters()) {
      last.push_back(parameter.tensor.grad().clone());
    }
  }

  std::vector<at::Tensor> last;
  int num_later = 0;

 private:
  const Training& training_;
};

// Returns the gradients of one step under a policy, from the initial parameters.
std::vector<at::Tensor> gradients_of(const TrainingSettings& settings, std::int64_t step,
                                     const char* policy = "none") {
  Training training(settings);
  const Batch batch = training.batch(0);
  const Trace trace = record_trace([&] { return training.loss(batch); });
  training.clear_gradients();
  training.use_plan(
      std::get<Plan>(resolve(std::get<Policy>(parse_policy(policy)), trace, NoEffect::kAllow)),
      Schedule::kOnDemand);
  Gradients gradients(training);
  training.step(step, gradients);
  CHECK(gradients.num_later == micro_batches(settings.model) - 1);
  return gradients.last;
}

// Two is a power of two, so that dividing the loss by it changes no bit of the mantissa.
TEST_CASE("gradients of two micro-batches are the halves of each, added up, bit for bit") {
  at::set_num_threads(1);
  const std::vector<at::Tensor> first = gradients_of(settings_of({}), 0);
  const std::vector<at::Tensor> second = gradients_of(settings_of({}), 1);
  for (const char* policy : {"none", "full", "attn_only"}) {
    CAPTURE(policy);
    const std::vector<at::Tensor> sum = gradients_of(settings_of({{"accumulate", 2}}), 0, policy);
    REQUIRE(sum.size() == first.size());
    for (std::size_t i = 0; i < sum.size(); ++i) {
      CHECK(at::equal(sum[i], first[i] / 2 + second[i] / 2));
    }
  }
}

TEST_CASE("the second step takes the batches after those of the first step") {
  at::set_num_threads(1);
  const std::vector<at::Tensor> third = gradients_of(settings_of({}), 2);
  const std::vector<at::Tensor> fourth = gradients_of(settings_of({}), 3);
  const std::vector<at::Tensor> sum = gradients_of(settings_of({{"accumulate", 2}}), 1);
  for (std::size_t i = 0; i < sum.size(); ++i) {
    CHECK(at::equal(sum[i], third[i] / 2 + fourth[i] / 2));
  }
}

TEST_CASE("float32 gradients of a bfloat16 model are sums of its bfloat16 gradients") {
  at::set_num_threads(1);
  const std::vector<at::Tensor> first = gradients_of(settings_of({}, "bfloat16"), 0);
  const std::vector<at::Tensor> second = gradients_of(settings_of({}, "bfloat16"), 1);
  const std::vector<at::Tensor> sum =
      gradients_of(settings_of({{"accumulate", 2}, {"float32_gradients", 1}}, "bfloat16"), 0);
  for (std::size_t i = 0; i < sum.size(); ++i) {
    REQUIRE(first[i].scalar_type() == at::kBFloat16);
    REQUIRE(sum[i].scalar_type() == at::kFloat);
    CHECK(at::equal(sum[i], first[i].to(at::kFloat) / 2 + second[i].to(at::kFloat) / 2));
  }
}

}  // namespace
}  // namespace rematch
