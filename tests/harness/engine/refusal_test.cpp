// Tests which steps the engine refuses, and with which messages. A step that fails without the
// engine must also fail with it.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>
#include <string>

#include "harness/engine/interception.h"
#include "harness/engine/record/op_facts.h"
#include "models/scope/scope.h"
#include "tests/support/networks.h"
#include "tests/support/schedules.h"
#include "tests/support/strict.h"

namespace rematch::testing {
namespace {

using Catch::Contains;

NamedNetwork network_of(
    const std::function<at::Tensor(const at::Tensor&, const at::Tensor&)>& layer) {
  return {"refused", [layer] {
            Network network;
            network.input = at::ones({4, 4}).requires_grad_();
            const at::Tensor w = at::ones({4, 4}).requires_grad_();
            network.parameters = {w};
            network.layers = {[w](const at::Tensor& x) { return at::mm(x, w); },
                              [layer, w](const at::Tensor& x) { return layer(x, w); }};
            return network;
          }};
}

class RecomputedNames final : public OpObserver {
 public:
  void executed(const c10::OperatorHandle& op, Phase phase, const torch::jit::Stack&) override {
    if (phase == Phase::kRecompute) names.insert(facts_of(op).name);
  }
  std::set<std::string> names;
};

// Returns a plan made from a trace of `like`. It recomputes all layers.
Plan plan_like(const NamedNetwork& like) {
  return plan_of_blocks(trace_of(like), [](int, int) { return false; });
}

PlannedRegion block(int index, int type) {
  const std::string scope = "blocks." + std::to_string(index);
  return {.first_scope = scope, .last_scope = scope, .type = type, .layers = {index}};
}

TEST_CASE("a parameter that changes between forward and backward is refused") {
  const NamedNetwork network = network_of(
      [](const at::Tensor& x, const at::Tensor& w) { return at::mm(at::sin(at::mm(x, w)), w); });
  const Plan plan = plan_like(network);
  for (const Schedule schedule : kSchedules) {
    const Network made = network.make();
    Recording recording(strict(plan, schedule));
    const at::Tensor loss = loss_of(forward_with_scopes(made));
    at::Tensor data = made.parameters[0].detach();
    data.mul_(2);
    CHECK_THROWS_AS(loss.backward(), Refused);
  }
}

TEST_CASE("a refusal names region, op and tensor") {
  const NamedNetwork network =
      network_of([](const at::Tensor& x, const at::Tensor& w) { return at::sin(at::mm(x, w)); });
  const Plan plan = plan_like(network);
  const Network made = network.make();
  Recording recording(strict(plan, Schedule::kOnDemand));
  const at::Tensor loss = loss_of(forward_with_scopes(made));
  made.parameters[0].detach().mul_(2);
  CHECK_THROWS_WITH(loss.backward(), Contains("region blocks.1") && Contains("aten::mm") &&
                                         Contains("float [4, 4]") && Contains("after backward"));
}

TEST_CASE("a later write to a saved tensor is an error, as in plain autograd") {
  const NamedNetwork network = network_of([](const at::Tensor& x, const at::Tensor& w) {
    at::Tensor y = at::mm(x, w);
    const at::Tensor z = at::sin(y);  // autograd saves y for the backward of sin
    y.mul_(2);
    return z + y;
  });
  const Network plain = network.make();
  CHECK_THROWS_WITH(loss_of(forward_plain(plain)).backward(),
                    Contains("modified by an inplace operation"));
  Plan plan;
  plan.types = {RegionType{.ops = {{.name = "aten::mm"},
                                   {.name = "aten::sin"},
                                   {.name = "aten::mul_.Scalar"},
                                   {.name = "aten::add.Tensor"}}}};
  plan.regions = {block(1, 0)};
  for (const Schedule schedule : kSchedules) {
    const Network made = network.make();
    Recording recording(strict(plan, schedule));
    const at::Tensor loss = loss_of(forward_with_scopes(made));
    CHECK_THROWS_WITH(loss.backward(), Contains("modified by an in-place op after it was saved"));
  }
}

TEST_CASE("a side effect on an outside buffer happens only once") {
  const at::Tensor counter = at::zeros({1});
  const NamedNetwork network = network_of([counter](const at::Tensor& x, const at::Tensor& w) {
    at::Tensor(counter).add_(1);
    return at::sin(at::mm(x, w));
  });
  Plan plan;
  plan.types = {RegionType{
      .ops = {{.name = "aten::add_.Scalar"}, {.name = "aten::mm"}, {.name = "aten::sin"}}}};
  plan.regions = {block(1, 0)};
  for (const Schedule schedule : kSchedules) {
    counter.zero_();
    const Network made = network.make();
    Recording recording(strict(plan, schedule));
    loss_of(forward_with_scopes(made)).backward();
    CHECK(counter.item<float>() == 1.0F);
  }
}

TEST_CASE("an op that differs from the plan is refused under a strict checkpoint") {
  const NamedNetwork network =
      network_of([](const at::Tensor& x, const at::Tensor& w) { return at::sin(at::mm(x, w)); });
  const auto run = [&](std::vector<PlannedOp> ops) {
    Plan plan;
    plan.types = {RegionType{.ops = std::move(ops)}};
    plan.regions = {block(1, 0)};
    const Network made = network.make();
    Recording recording(strict(plan, Schedule::kOnDemand));
    loss_of(forward_with_scopes(made)).backward();
  };
  CHECK_NOTHROW(run({{.name = "aten::mm"}, {.name = "aten::sin"}}));
  CHECK_THROWS_WITH(run({{.name = "aten::mm"}, {.name = "aten::cos"}}),
                    Contains("region blocks.1, op 1: the plan expects aten::cos, the model ran "
                             "aten::sin(float [4, 4])"));
  CHECK_THROWS_WITH(run({{.name = "aten::mm"}}), Contains("the plan expects its end"));
  CHECK_THROWS_WITH(run({{.name = "aten::mm"}, {.name = "aten::sin"}, {.name = "aten::cos"}}),
                    Contains("region blocks.1 ended after 2 of 3 planned ops"));
  CHECK_THROWS_WITH(run({{.name = "aten::no_such_op"}}), Contains("aten::no_such_op"));
}

// Stores warnings, which LibTorch's own handler would print.
struct CollectedWarnings final : c10::WarningHandler {
  void process(const c10::Warning& warning) override { messages.push_back(warning.msg()); }
  std::vector<std::string> messages;
};

TEST_CASE(
    "without a strict checkpoint, an op that differs from the plan runs and is reported only "
    "once") {
  const NamedNetwork network =
      network_of([](const at::Tensor& x, const at::Tensor& w) { return at::sin(at::mm(x, w)); });
  Plan plan;
  plan.types = {RegionType{.ops = {{.name = "aten::mm"}, {.name = "aten::cos"}}}};
  plan.regions = {block(1, 0)};
  for (const OnMismatch on_mismatch : {OnMismatch::kFollow, OnMismatch::kFollowQuietly}) {
    CollectedWarnings warnings;
    const c10::WarningUtils::WarningHandlerGuard guard(&warnings);
    const Checkpoint checkpoint(plan, Schedule::kOnDemand, {.on_mismatch = on_mismatch});
    for (int step = 0; step < 3; ++step) {
      const Network made = network.make();
      Recording recording(checkpoint);
      loss_of(forward_with_scopes(made)).backward();
      recording.finish();
    }
    REQUIRE(checkpoint.departures().size() == 1);
    const Departures found = checkpoint.departures().front();
    CHECK(found.passes == 3);
    CHECK(found.left == 3);
    CHECK(checkpoint.num_left() == 3);
    CHECK(found.region == "blocks.1");
    CHECK(found.first_difference ==
          "op 1: the plan expects aten::cos, the model ran aten::sin(float [4, 4])");
    CHECK(found.extra_ops == 3);
    CHECK(found.missing_ops == 3);
    CHECK(found.kept_beyond_plan == Bytes{});
    const std::size_t num_expected = on_mismatch == OnMismatch::kFollow ? 1 : 0;
    REQUIRE(warnings.messages.size() == num_expected);
    for (const std::string& message : warnings.messages) {
      CHECK_THAT(message, Contains("region blocks.1 left its plan (op 1: the plan expects"));
    }
  }
}

// The plan names aten::view, but the step runs aten::_reshape_alias. Recompute must run the same op
// as the step. See Note [One op, two names].
TEST_CASE("an op matches the plan under either of its two names") {
  const NamedNetwork network = network_of([](const at::Tensor& x, const at::Tensor& w) {
    return at::sin(at::reshape(at::mm(x, w).slice(1, 0, 2),
                               {2, 2, 2}));  // rows of this slice are not contiguous
  });
  const Trace trace = trace_of(network);
  const auto alias = std::find_if(trace.ops.begin(), trace.ops.end(), [](const TracedOp& op) {
    return op.name == "aten::_reshape_alias";
  });
  REQUIRE(alias != trace.ops.end());
  Plan plan = plan_like(network);
  int num_renamed = 0;
  for (RegionType& type : plan.types) {
    for (PlannedOp& op : type.ops) {
      if (op.name != "aten::_reshape_alias") continue;
      op.name = "aten::view";
      ++num_renamed;
    }
  }
  REQUIRE(num_renamed == 1);
  const Outcome plain = run_plain(network);
  for (const Schedule schedule : kSchedules) {
    RecomputedNames recomputed;
    {
      const OpObserverGuard observe(&recomputed);
      CHECK(first_difference(plain, run_engine(network, plan, schedule)) == "");
    }
    CHECK(recomputed.names.count("aten::_reshape_alias") == 1);
    CHECK(recomputed.names.count("aten::view") == 0);
  }
}

TEST_CASE("inference mode in a region and a recording in an open region are refused") {
  const NamedNetwork network =
      network_of([](const at::Tensor& x, const at::Tensor& w) { return at::sin(at::mm(x, w)); });
  const Plan plan = plan_like(network);
  const Network made = network.make();
  Recording recording(strict(plan, Schedule::kOnDemand));
  {
    const c10::InferenceMode inference;
    const at::AutoGradMode grad(true);  // the engine does not record ops that run without grad mode
    CHECK_THROWS_WITH(Scope("blocks", 1), Contains("region blocks.1 runs in inference mode"));
  }
  {
    const Scope open("blocks", 1);
    CHECK_THROWS_WITH(Recording(strict(plan, Schedule::kOnDemand)),
                      Contains("inside an open region"));
  }
}

}  // namespace
}  // namespace rematch::testing
