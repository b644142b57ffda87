#include "harness/measure/op_counter.h"

#include <ATen/ops/mm.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/sum.h>

#include <thread>
#include "tests/support/catch.h"

#include "harness/measure/step_place.h"

namespace rematch {
namespace {

std::int64_t count(const CountsRecord& record, Phase phase, const std::string& op) {
  const auto& ops = record.by_op[static_cast<std::size_t>(phase)];
  const auto found = ops.find(op);
  return found == ops.end() ? 0 : found->second;
}

TEST_CASE("ops are counted by phase, exact name and class") {
  const at::Tensor x = at::ones({4, 4});
  const at::Tensor w = at::ones({4, 4}).requires_grad_();
  OpCounter counter;
  {
    const OpObserverGuard observe(&counter);
    at::mm(at::mm(x, w), w).sum().backward();
  }
  const CountsRecord record = counter.record(1);
  CHECK(record.counted_steps == 1);
  CHECK(count(record, Phase::kForward, "aten::mm") == 2);
  // Backward of (x w) w. The outer mm needs two matmuls, because both of its inputs need gradients.
  // The inner mm needs one, because x needs no gradient.
  CHECK(count(record, Phase::kBackward, "aten::mm") == 3);
  const auto& classes = record.by_class[static_cast<std::size_t>(Phase::kBackward)];
  CHECK(classes.at(OpClass::kMatmul) == 3);
  CHECK(record.by_op[static_cast<std::size_t>(Phase::kRecompute)].empty());
}

TEST_CASE("overloads are distinguished by name") {
  OpCounter counter;
  const at::Tensor x = at::ones({2});
  {
    const OpObserverGuard observe(&counter);
    at::mul(x, x);
    x.sum();
    x.sum(0);
  }
  const CountsRecord record = counter.record(1);
  CHECK(count(record, Phase::kForward, "aten::mul.Tensor") == 1);
  CHECK(count(record, Phase::kForward, "aten::sum") == 1);
  CHECK(count(record, Phase::kForward, "aten::sum.dim_IntList") == 1);
}

TEST_CASE("an op inside a guard for the optimizer's phase is counted as an op of the optimizer") {
  OpCounter counter;
  const at::Tensor x = at::ones({2});
  {
    const OpObserverGuard observe(&counter);
    {
      const PhaseGuard optimizer(Phase::kOptimizer);
      at::mul(x, x);
    }
    at::mul(x, x);
  }
  const CountsRecord record = counter.record(1);
  CHECK(count(record, Phase::kOptimizer, "aten::mul.Tensor") == 1);
  CHECK(count(record, Phase::kForward, "aten::mul.Tensor") == 1);
}

TEST_CASE("ops outside of the observer's guard are not counted") {
  OpCounter counter;
  const at::Tensor x = at::ones({2});
  {
    const OpObserverGuard observe(&counter);
    at::mul(x, x);
  }
  at::mul(x, x);
  CHECK(count(counter.record(1), Phase::kForward, "aten::mul.Tensor") == 1);
}

}  // namespace
}  // namespace rematch
