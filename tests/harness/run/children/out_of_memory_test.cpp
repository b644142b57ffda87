// Runs points with less and less memory. The result of each point must name the phase that failed,
// and the size of the failed request.
#include <ATen/core/Tensor.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/sum.h>

#include <map>
#include <set>

#include "harness/measure/memory.h"
#include "harness/run/passes/passes.h"
#include "harness/run/variants.h"
#include "policies/catalogue/catalogue.h"
#include "tests/support/catch.h"

namespace rematch {
namespace {

using Dimensions = std::map<std::string, std::int64_t>;

PointRequest request_for(const std::string& policy, const Dimensions& dimensions) {
  install_counting_allocators();  // must run before the first tensor is made
  RunSettings settings;
  settings.request.model = std::get<ModelSpec>(make_spec("llama_small", dimensions));
  settings.request.policies = std::get<std::vector<Policy>>(parse_policies(policy));
  const Variant variant = std::get<std::vector<Variant>>(make_variants(settings)).front();
  PointRequest request;
  request.pass = Pass::kExact;
  request.identity = variant.identity;
  request.policy = variant.policy;
  request.plan = variant.plan;
  request.num_steps = 2;
  return request;
}

PointRecord run_within(const PointRequest& request, std::optional<Bytes> limit) {
  limit_cpu_memory(limit);
  PointRecord record = run_passes(request);
  limit_cpu_memory(std::nullopt);
  // After an error, this thread's autograd queue keeps the nodes that did not run, with their
  // tensors, until the next backward. So one more backward runs here.
  at::ones({1}).requires_grad_().sum().backward();
  return record;
}

// Runs the request with less and less memory, from the step's peak down to the size of the
// parameters. Returns the phases that failed.
std::set<Phase> phases_that_fail(const PointRequest& request) {
  const PointRecord whole = run_within(request, std::nullopt);
  REQUIRE(whole.status == PointStatus::kOk);
  const Bytes before = current_cpu_memory().total;
  const std::int64_t peak = whole.memory->peak_allocated->count;
  std::set<Phase> phases;
  for (std::int64_t share = 1; share < 40; ++share) {
    const PointRecord record = run_within(request, Bytes{peak - peak * share / 50});
    CAPTURE(share, record.reason);
    // The failed step must not leak memory.
    CHECK(current_cpu_memory().total.count == before.count);
    REQUIRE(record.status == PointStatus::kOom);
    CHECK_THAT(record.reason, Catch::Contains("out of memory"));
    REQUIRE(record.failure.has_value());
    CHECK(record.failure->requested.value().count > 0);
    if (!record.failure->phase) continue;  // even the model did not fit, so no phase began
    CHECK_THAT(record.reason,
               Catch::Contains(std::string(to_string(*record.failure->phase)) + ")"));
    phases.insert(*record.failure->phase);
  }
  return phases;
}

// A model with many tokens and few parameters, so that activations run out of memory.
const Dimensions kManyTokens = {{"layers", 2}, {"dim", 32},    {"heads", 2},    {"kv_heads", 1},
                                {"ffn", 512},  {"vocab", 256}, {"tokens", 128}, {"batch", 2}};
// A model with many parameters and few tokens. It runs out of memory when the first step allocates
// the optimizer's state.
const Dimensions kManyParameters = {{"layers", 2}, {"dim", 64},    {"heads", 2},  {"kv_heads", 1},
                                    {"ffn", 512},  {"vocab", 512}, {"tokens", 2}, {"batch", 1}};

TEST_CASE(
    "running out of memory in forward, recompute or backward gives a result that names the phase") {
  const std::set<Phase> without = phases_that_fail(request_for("none", kManyTokens));
  CHECK(without.count(Phase::kForward) == 1);
  CHECK(without.count(Phase::kRecompute) == 0);
  const std::set<Phase> with = phases_that_fail(request_for("full", kManyTokens));
  CHECK(with.count(Phase::kForward) == 1);
  CHECK(with.count(Phase::kRecompute) == 1);
  CHECK((with.count(Phase::kBackward) == 1 || without.count(Phase::kBackward) == 1));
}

TEST_CASE("running out of memory in the optimizer gives a result that names the phase") {
  CHECK(phases_that_fail(request_for("full", kManyParameters)).count(Phase::kOptimizer) == 1);
}

}  // namespace
}  // namespace rematch
