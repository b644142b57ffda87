// Tests asynchronous collectives, which return while they are still running. Recompute must issue
// them again, and must wait before it reads a result. The prediction must count the ops that
// recompute executes.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include <map>
#include <random>
#include <string>

#include "harness/engine/interception.h"
#include "harness/engine/record/op_facts.h"
#include "models/scope/scope.h"
#include "policies/predict/step/counts.h"
#include "policies/trace/collective.h"
#include "tests/support/catch.h"
#include "tests/support/collective_networks.h"
#include "tests/support/networks.h"
#include "tests/support/schedules.h"
#include "tests/support/seeds.h"
#include "tests/support/slow_group.h"
#include "tests/support/strict.h"

namespace rematch::testing {
namespace {

using Catch::Contains;

constexpr const char* kGroup = "slow";

using Counts = std::map<std::string, std::int64_t>;

class RecomputeCounter final : public OpObserver {
 public:
  void executed(const c10::OperatorHandle& op, Phase phase, const torch::jit::Stack&) override {
    if (phase == Phase::kRecompute) ++counts[facts_of(op).name];
  }
  Counts counts;
};

struct NamedChoice {
  std::string name;
  std::function<bool(const std::string& op, int layer, int index)> save;
};

bool is_start(const std::string& op) { return collective_part(op) == CollectivePart::kStart; }

std::vector<NamedChoice> choices() {
  std::vector<NamedChoice> all = {
      {"nothing", [](const std::string&, int, int) { return false; }},
      {"everything", [](const std::string&, int, int) { return true; }},
      {"collectives", [](const std::string& op, int, int) { return is_start(op); }},
      {"all but collectives", [](const std::string& op, int, int) { return !is_start(op); }},
      {"matmuls", [](const std::string& op, int, int) { return op == "aten::mm"; }}};
  for (std::uint32_t seed = 0; seed < num_seeds(3); ++seed) {
    all.push_back({"random " + std::to_string(seed), [seed](const std::string&, int layer, int op) {
                     std::mt19937 dice(seed * 1000003U + static_cast<unsigned>(layer * 131 + op));
                     dice.discard(3);
                     return dice() % 2 == 0;
                   }});
  }
  return all;
}

Plan plan_of(const Trace& trace, const NamedChoice& choice, bool early_stop) {
  std::map<int, OpId> first_op;
  for (const TracedBlock& block : trace.blocks) {
    first_op[block.index] = trace.scopes[block.scope].first_op;
  }
  return plan_of_blocks(
      trace,
      [&](int layer, int op) {
        const OpId id = first_op.at(layer) + op;
        return choice.save(trace.ops[id].name, layer, op);
      },
      early_stop);
}

TEST_CASE("recompute with asynchronous collectives is bitwise equal and runs the predicted ops") {
  const SlowGroup group(kGroup);
  for (const NamedNetwork& network : collective_networks(kGroup)) {
    CAPTURE(network.name);
    const Outcome plain = run_plain(network);
    const Trace trace = trace_of(network);
    for (const NamedChoice& choice : choices()) {
      CAPTURE(choice.name);
      for (const bool early_stop : {true, false}) {
        CAPTURE(early_stop);
        const Plan plan = plan_of(trace, choice, early_stop);
        for (const Schedule schedule : kSchedules) {
          CAPTURE(to_string(schedule));
          RecomputeCounter counter;
          {
            const OpObserverGuard observe(&counter);
            CHECK(first_difference(plain, run_engine(network, plan, schedule)) == "");
          }
          CHECK(counter.counts == predict_counts(trace, plan, schedule).ops(Phase::kRecompute));
          CHECK(c10d::get_work_registry_size() == 0);
        }
      }
    }
  }
}

std::int64_t sum_of(const Counts& counts, CollectivePart part) {
  std::int64_t sum = 0;
  for (const auto& [op, count] : counts) {
    if (collective_part(op) == part) sum += count;
  }
  return sum;
}

// Each of three blocks has an all-gather, two matmuls and a reduce-scatter. Backward of the first
// matmul reads the result of the all-gather, but no backward reads the result of the
// reduce-scatter.
TEST_CASE("recompute issues the predicted collectives of a sequence-parallel block again") {
  const SlowGroup group(kGroup);
  const NamedNetwork network = collective_networks(kGroup).at(1);
  REQUIRE(network.name == "sequence parallel");
  const Trace trace = trace_of(network);
  const auto recomputed = [&](const NamedChoice& choice, bool early_stop, Schedule schedule) {
    RecomputeCounter counter;
    const OpObserverGuard observe(&counter);
    run_engine(network, plan_of(trace, choice, early_stop), schedule);
    return std::pair(sum_of(counter.counts, CollectivePart::kStart),
                     sum_of(counter.counts, CollectivePart::kWait));
  };
  const NamedChoice nothing = choices().at(0);
  const NamedChoice collectives = choices().at(2);
  for (const bool early_stop : {true, false}) {
    CHECK(recomputed(nothing, early_stop, Schedule::kOnDemand) == std::pair<long, long>{3, 3});
    CHECK(recomputed(collectives, early_stop, Schedule::kOnDemand) == std::pair<long, long>{0, 0});
  }
  CHECK(recomputed(nothing, true, Schedule::kWholeRegion) == std::pair<long, long>{3, 3});
  CHECK(recomputed(nothing, false, Schedule::kWholeRegion) == std::pair<long, long>{6, 6});
  // Like torch.utils.checkpoint, recompute repeats the wait even if the collective's result was
  // kept.
  CHECK(recomputed(collectives, true, Schedule::kWholeRegion) == std::pair<long, long>{0, 3});
  CHECK(recomputed(collectives, false, Schedule::kWholeRegion) == std::pair<long, long>{0, 6});
}

TEST_CASE(
    "a second backward, and a backward through a part of the graph, also wait for a collective") {
  const SlowGroup group(kGroup);
  for (const NamedNetwork& network : collective_networks(kGroup)) {
    CAPTURE(network.name);
    const auto twice = [&] {
      seed_generator();
      const Network made = network.make();
      const at::Tensor loss = loss_of(forward_with_scopes(made));
      loss.backward({}, /*retain_graph=*/true, /*create_graph=*/false, {{made.parameters[0]}});
      loss.backward({}, /*retain_graph=*/true);
      loss.backward();
      return outcome_of(made, loss);
    };
    const Outcome plain = twice();
    const Plan plan = plan_of(trace_of(network), choices().front(), true);
    for (const Schedule schedule : kSchedules) {
      CAPTURE(to_string(schedule));
      const Recording recording(strict(plan, schedule));
      CHECK(first_difference(plain, twice()) == "");
      CHECK(c10d::get_work_registry_size() == 0);
    }
  }
}

// Returns a network with these layers. Layer i is a region named block i.
NamedNetwork network_of_layers(const std::vector<Region>& layers) {
  return {"made up", [layers] {
            Network network;
            network.input = at::ones({4, 4}).requires_grad_();
            network.layers = layers;
            return network;
          }};
}

TEST_CASE(
    "a collective that is waited for only after its region is refused, and the error names the "
    "collective") {
  const SlowGroup group(kGroup);
  at::Tensor started;
  const NamedNetwork late = network_of_layers(
      {[&started](const at::Tensor& x) {
         started = start_all_reduce(x.detach(), kGroup);
         return at::sin(x);
       },
       [&started](const at::Tensor& x) { return at::sin(x) * wait_for(started); }});
  const Plan plan = plan_of(trace_of(late), choices().front(), true);
  for (const Schedule schedule : kSchedules) {
    CAPTURE(to_string(schedule));
    CHECK_THROWS_AS(run_engine(late, plan, schedule), Refused);
    wait_for(started);
    CHECK_THROWS_WITH(run_engine(late, plan, schedule),
                      Contains("region blocks.0: _c10d_functional::all_reduce is not waited for"));
    wait_for(started);
  }
  // A plan is accepted if the start of a collective and its wait are in the same region.
  Plan one = plan;
  one.regions.front().last_scope = one.regions.back().last_scope;
  one.regions.resize(1);
  RegionType& type = one.types.front();
  const RegionType& second = plan.types.at(static_cast<std::size_t>(plan.regions.back().type));
  type.ops.insert(type.ops.end(), second.ops.begin(), second.ops.end());
  for (const Schedule schedule : kSchedules) {
    const Outcome plain = run_plain(late);
    CHECK(first_difference(plain, run_engine(late, one, schedule)) == "");
    CHECK(c10d::get_work_registry_size() == 0);
  }
}

TEST_CASE("a collective that started before the region may be waited for inside it") {
  const SlowGroup group(kGroup);
  at::Tensor started;
  const NamedNetwork network = network_of_layers(
      {[&started](const at::Tensor& x) {
         started = start_all_reduce(x.detach(), kGroup);
         return at::sin(x);
       },
       [&started](const at::Tensor& x) { return at::sin(x) * at::cos(wait_for(started)); }});
  const Outcome plain = run_plain(network);
  Plan plan = plan_of(trace_of(network), choices().front(), true);
  plan.regions.erase(plan.regions.begin());
  for (const Schedule schedule : kSchedules) {
    CHECK(first_difference(plain, run_engine(network, plan, schedule)) == "");
    CHECK(c10d::get_work_registry_size() == 0);
  }
}

TEST_CASE("a collective that returns a handle is refused before anything runs") {
  Plan plan;
  plan.types = {RegionType{.ops = {{.name = "c10d::alltoall_base_", .scope = "blocks.0"}}}};
  plan.regions = {{.first_scope = "blocks.0", .last_scope = "blocks.0", .type = 0, .layers = {0}}};
  CHECK_THROWS_AS(Checkpoint(plan, Schedule::kOnDemand), Refused);
  CHECK_THROWS_WITH(Checkpoint(plan, Schedule::kOnDemand),
                    Contains("c10d::alltoall_base_ (scope blocks.0)") &&
                        Contains("_c10d_functional") && Contains("wait_tensor"));
}

}  // namespace
}  // namespace rematch::testing
