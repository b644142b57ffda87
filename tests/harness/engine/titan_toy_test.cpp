// Repeats torchtitan's own test of its policy (tests/unit_tests/test_activation_checkpoint.py). The
// model has three linears on 512 rows: gate 512 -> 512, wq 512 -> 512, output 512 -> 1024. The
// test's figures are the flops of backward, in units of 2 x 512^3, and the bytes held after
// forward, in units of 2^20.
#include <ATen/Functions.h>

#include "harness/engine/record/op_facts.h"
#include "harness/engine/recording.h"
#include "harness/measure/memory.h"
#include "harness/trace/tracer.h"
#include "models/scope/scope.h"
#include "tests/support/catch.h"
#include "tests/support/model_step.h"
#include "tests/support/step_meter.h"
#include "tests/support/strict.h"

namespace rematch::testing {
namespace {

constexpr std::int64_t kWidth = 512;
constexpr double kMega = 1 << 20;

struct Toy {
  at::Tensor input = weight(kWidth, 1);
  at::Tensor gate = weight(kWidth, 2);
  at::Tensor wq = weight(kWidth, 3);
  at::Tensor output = weight(2 * kWidth, 4);

  static at::Tensor weight(std::int64_t rows, std::int64_t phase) {
    const at::Tensor numbers = at::arange(rows * kWidth, at::kFloat).add(phase);
    return at::sin(numbers).mul(0.05).view({rows, kWidth}).requires_grad_(true);
  }

  at::Tensor loss() const {
    const Scope block("blocks", 0);
    at::Tensor x;
    {
      const Scope moe("moe");
      const Scope router("router");
      const Scope part("gate");
      x = at::linear(input, gate);
    }
    {
      const Scope part("attention");
      x = at::linear(x, wq);
    }
    const Scope part("output");
    return at::linear(x, output).sum();
  }
};

// Counts recomputed matmuls in units: one unit for every 512 columns of the result.
class RecomputedUnits final : public OpObserver {
 public:
  void executed(const c10::OperatorHandle& op, Phase phase,
                const torch::jit::Stack& stack) override {
    if (facts_of(op).name != "aten::mm") return;
    if (phase == Phase::kRecompute) recomputed += stack.back().toTensor().size(1) / kWidth;
    if (phase == Phase::kBackward) ++backward_products;
  }
  std::int64_t recomputed = 0;
  int backward_products = 0;
};

struct ToyStep {
  std::int64_t backward_units = 0;
  double megabytes = 0;
  Outcome outcome;
};

ToyStep run(const std::string& policy, Schedule schedule) {
  install_counting_allocators();
  Trace trace;
  {
    const Toy traced;
    trace = record_trace([&] { return traced.loss(); });
  }
  const Checkpoint checkpoint = strict(plan_for(policy, trace), schedule);
  const Toy toy;
  const std::int64_t before = cpu_bytes();
  RecomputedUnits units;
  ToyStep step;
  {
    const OpObserverGuard observe(&units);
    Recording recording(checkpoint);
    const at::Tensor loss = toy.loss();
    recording.finish();
    const auto scalar = static_cast<std::int64_t>(loss.nbytes());
    step.megabytes = static_cast<double>(cpu_bytes() - before - scalar) / kMega;
    loss.backward();
    step.outcome.loss = loss.detach();
  }
  for (const at::Tensor* leaf : {&toy.input, &toy.gate, &toy.wq, &toy.output}) {
    step.outcome.gradients.push_back(leaf->grad());
  }
  // Backward runs two matmuls for each of three linears. Each costs as much as the linear's matmul
  // in forward, so all six cost 8 units.
  CHECK(units.backward_products == 6);
  step.backward_units = 8 + units.recomputed;
  return step;
}

TEST_CASE("policies on torchtitan's toy model give the published flops and bytes") {
  struct Row {
    const char* policy;
    std::int64_t units;
    double megabytes;
  };
  // sac_titan never saves the result of the gate, which it identifies by shape. wq has the same
  // shape, so its result is not saved either.
  const Row rows[] = {{"none", 8, 2.0},
                      {"sac_titan_excluding([])", 9, 3.0},
                      {"sac_titan", 10, 2.0},
                      {"sac_titan_excluding([output])", 11, 1.0},
                      {"full_nostop", 12, 0.0}};
  const ToyStep none = run("none", Schedule::kWholeRegion);
  for (const Row& row : rows) {
    CAPTURE(row.policy);
    const ToyStep step = run(row.policy, Schedule::kWholeRegion);
    CHECK(step.backward_units == row.units);
    CHECK(step.megabytes == row.megabytes);
    CHECK(first_difference(none.outcome, step.outcome) == "");
  }
}

// Backward does not need the last linear's result, so on_demand never recomputes it.
TEST_CASE(
    "on_demand does not recompute matmuls whose results torchtitan's toy model never reads in "
    "backward") {
  const auto units = [](const char* policy) {
    return run(policy, Schedule::kOnDemand).backward_units;
  };
  CHECK(units("none") == 8);
  CHECK(units("sac_titan_excluding([])") == 9);
  CHECK(units("sac_titan") == 10);
  CHECK(units("sac_titan_excluding([output])") == 9);
  CHECK(units("full_nostop") == 10);
}

}  // namespace
}  // namespace rematch::testing
