#include "policies/predict/device/sharding.h"

#include <algorithm>

#include "policies/catalogue/catalogue.h"
#include "policies/catalogue/resolve.h"
#include "policies/predict/step/step.h"
#include "policies/trace/trace_check.h"
#include "tests/support/catch.h"
#include "tests/support/toy_trace.h"

namespace rematch {
namespace {

Bytes gathered_most(const ShardedStep& step) {
  return *std::max_element(step.gathered.begin(), step.gathered.end());
}

StepPrediction predict(const ShardedStep& step, const Trace& original, const char* policy) {
  const auto plan = resolve(std::get<Policy>(parse_policy(policy)), original);
  StepSimulator simulator(step.trace);
  simulator.use_gathered(step.gathered);
  return simulator.simulate(std::get<Plan>(plan), Schedule::kOnDemand);
}

TEST_CASE("every parameter belongs to a scope that reads it") {
  const Trace trace = testing::toy_llama();
  Bytes total;
  for (const Bytes bytes : parameters_by_top_scope(trace)) total += bytes;
  CHECK(total == trace.parameter_bytes);
}

TEST_CASE("a single rank holds as much as the unsharded step") {
  const Trace trace = testing::toy_llama();
  const ShardedStep step = shard_step(trace, 1);
  CHECK(step.trace == trace);
  CHECK(gathered_most(step) == Bytes{});
}

// Sharding does not change the bytes of activations.
TEST_CASE("a rank holds its shard, the gathered scope, and all of its activations") {
  const Trace trace = testing::toy_llama({.layers = 6, .tokens = 64});
  StepSimulator alone(trace);
  for (const char* policy : {"none", "full", "attn_only"}) {
    CAPTURE(policy);
    const auto plan = resolve(std::get<Policy>(parse_policy(policy)), trace);
    const StepPrediction whole = alone.simulate(std::get<Plan>(plan), Schedule::kOnDemand);
    Bytes previous = whole.peak_bytes();
    for (const int world : {2, 4, 8, 64}) {
      CAPTURE(world);
      const ShardedStep step = shard_step(trace, world);
      CHECK(trace_problem(step.trace).value_or("valid") == "valid");
      const StepPrediction rank = predict(step, trace, policy);
      // Each parameter's share is rounded up, by less than one byte per rank.
      CHECK(step.trace.parameter_bytes.count * world >= trace.parameter_bytes.count);
      CHECK(step.trace.parameter_bytes.count * world < trace.parameter_bytes.count + 4096 * world);
      CHECK(rank.after_forward - rank.before == whole.after_forward - whole.before);
      CHECK(rank.recomputed_ops == whole.recomputed_ops);
      CHECK(rank.peak_bytes() < previous);
      previous = rank.peak_bytes();
    }
    // Even with many ranks, a rank holds gathered parameters and all activations.
    CHECK(previous > whole.after_forward - whole.before);
  }
}

TEST_CASE("only the block whose backward is running is gathered") {
  const Trace trace = testing::toy_llama();
  const int world = 4;
  const ShardedStep step = shard_step(trace, world);
  const IdTable<ScopeId, Bytes> gathered = parameters_by_top_scope(trace);
  for (std::size_t i = 0; i < trace.backward.size(); ++i) {
    const BackwardEvent& before = trace.backward[i];
    const BackwardEvent& after = step.trace.backward[i];
    if (before.kind != BackwardEvent::Kind::kOp || !before.scope) continue;
    ScopeId top = *before.scope;
    while (trace.scopes[top].parent) top = *trace.scopes[top].parent;
    CHECK((after.other_bytes - after.gradient_bytes) -
              (before.other_bytes - before.gradient_bytes) ==
          gathered[top]);
    // Gradients are sharded once backward of their scope has ended. The gradients of the current
    // scope take at most the bytes of its parameters.
    CHECK(after.gradient_bytes <= before.gradient_bytes);
    CHECK(after.gradient_bytes.count * world >= before.gradient_bytes.count);
    CHECK(after.gradient_bytes.count <=
          before.gradient_bytes.count / world + gathered[top].count + 4096);
  }
}

// The peak without gathered parameters is lower, by at most the largest gathered scope.
TEST_CASE("the peak of forward includes gathered parameters") {
  const Trace trace = testing::toy_llama();
  ShardedStep step = shard_step(trace, 4);
  const auto forward_peak = [&] {
    return predict(step, trace, "none").peak_by_phase[static_cast<int>(Phase::kForward)];
  };
  const Bytes with = forward_peak();
  const Bytes gathered = gathered_most(step);
  step.gathered.assign(step.gathered.size(), {});
  CHECK(forward_peak() < with);
  CHECK(with <= forward_peak() + gathered);
}

}  // namespace
}  // namespace rematch
