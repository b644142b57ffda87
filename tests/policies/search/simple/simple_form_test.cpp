#include "policies/search/simple/simple_form.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "policies/catalogue/catalogue.h"
#include "policies/catalogue/resolve.h"
#include "policies/predict/step/step.h"
#include "policies/search/front/front_search.h"
#include "tests/support/catch.h"
#include "tests/support/made_up_profile.h"
#include "tests/support/toy_trace.h"

namespace rematch {
namespace {

Plan plan_for(const Policy& policy, const Trace& trace) {
  return std::get<Plan>(resolve(policy, trace, NoEffect::kAllow));
}

// Returns for each layer a text that lists the layer's regions and the ops that they keep.
std::vector<std::string> treatments(const Plan& plan, const Trace& trace) {
  std::vector<std::string> by_layer;
  for (const TracedBlock& block : trace.blocks) {
    const std::string& path = trace.scopes[block.scope].path;
    std::string text;
    for (const PlannedRegion& region : plan.regions) {
      if (region.first_scope != path && !region.first_scope.starts_with(path + ".")) continue;
      text += region.first_scope.substr(path.size()) + "[";
      for (const PlannedOp& op : plan.types[static_cast<std::size_t>(region.type)].ops) {
        if (op.treatment == Treatment::kSave) text += op.scope + op.name + " ";
      }
      text += "]";
    }
    by_layer.push_back(std::move(text));
  }
  return by_layer;
}

// Views take no time. Matmuls and attention take nine times as long per byte as other ops.
Profile profile_by_bytes(const Trace& trace) {
  Profile profile;
  profile.model = trace.model;
  profile.dimensions = trace.dimensions;
  profile.dtype = trace.dtype;
  profile.trace_sha256 = trace_sha256(trace);
  for (const TracedOp& op : trace.ops) {
    std::int64_t bytes = 0;
    for (const ValueId output : op.outputs) {
      const TracedValue& value = trace.values[output];
      bytes += trace.storages[value.storage].bytes.count;
    }
    const bool is_large = op.op_class == OpClass::kMatmul || op.name == "rematch::attention";
    profile.forward.emplace_back(op.is_view ? 0 : bytes * (is_large ? 9 : 1) + 50);
  }
  for (const BackwardEvent& event : trace.backward) {
    if (event.kind == BackwardEvent::Kind::kOp) profile.backward.emplace_back(300);
  }
  return profile;
}

bool is_mixed(const Trace& trace) {
  return std::any_of(trace.scopes.begin(), trace.scopes.end(),
                     [](const TracedScope& scope) { return scope.path.ends_with(".moe"); });
}

struct SimpleCase {
  Trace trace;
  Profile profile;
  SearchSpace space;
};

std::vector<SimpleCase> simple_cases() {
  std::vector<SimpleCase> cases;
  for (const Schedule schedule : {Schedule::kOnDemand, Schedule::kWholeRegion}) {
    for (Trace trace : {testing::toy_llama({.layers = 6, .tokens = 64}),
                        testing::toy_three_kinds({.layers = 6, .tokens = 64})}) {
      Profile profile = profile_by_bytes(trace);
      SearchSpace space;
      space.schedule = schedule;
      cases.push_back({std::move(trace), std::move(profile), space});
    }
  }
  return cases;
}

TEST_CASE("a simple plan has at most two groups of layers and keeps no view or cast") {
  for (const SimpleCase& each : simple_cases()) {
    CAPTURE(each.trace.model, to_string(each.space.schedule));
    SimpleSearch search(each.trace, each.profile, each.space);
    const Bytes least = search.lowest().figures.peak;
    for (int step = 0; step <= 20; ++step) {
      const auto point = search.fastest_within({least.count + least.count * step / 20});
      REQUIRE(point.has_value());
      const std::vector<std::string> by_layer = treatments(point->plan, each.trace);
      // Counts the layers that are treated differently from the previous layer of their kind.
      const int kinds = is_mixed(each.trace) ? 3 : 1;
      std::set<std::size_t> changes;
      for (std::size_t layer = static_cast<std::size_t>(kinds); layer < by_layer.size(); ++layer) {
        if (by_layer[layer] != by_layer[layer - static_cast<std::size_t>(kinds)]) {
          changes.insert(layer);
        }
      }
      CAPTURE(point->saves);
      CHECK(changes.size() <= static_cast<std::size_t>(kinds));
      for (const RegionType& type : point->plan.types) {
        for (const PlannedOp& op : type.ops) {
          if (op.treatment != Treatment::kSave) continue;
          CHECK(op.bytes.count > 0);  // not a view, which would allocate nothing
          CHECK(op_class_of(op.name) != OpClass::kCopy);
        }
      }
    }
  }
}

// All policies in the list have the simple form, even if no trainer has a setting for their save
// list.
TEST_CASE("no policy of the simple form is better than the best simple plan") {
  const char* const known =
      "none,full,first_n(1),first_n(3),first_n(5),last_n(2),attn_only,ops_block,save_mm,"
      "save_compute";
  const auto policies = std::get<std::vector<Policy>>(parse_policies(known));
  for (const SimpleCase& each : simple_cases()) {
    CAPTURE(each.trace.model, to_string(each.space.schedule));
    SimpleSearch search(each.trace, each.profile, each.space);
    StepSimulator simulator(each.trace, each.space.optimizer);
    simulator.use_profile(each.profile);
    for (const Policy& policy : policies) {
      CAPTURE(policy.name);
      const StepPrediction step =
          simulator.simulate(plan_for(policy, each.trace), each.space.schedule);
      const auto found = search.fastest_within(step.peak_bytes());
      REQUIRE(found.has_value());
      CHECK(found->figures.peak <= step.peak_bytes());
      CHECK(found->figures.recompute <= step.time->recompute);
    }
  }
}

// Eight ops of a block can be kept, so there are 256 save lists. All layers use the same list.
TEST_CASE("the simple search tries every save list over whole blocks") {
  const Trace trace = testing::toy_llama({.layers = 3, .tokens = 64});
  const Profile profile = profile_by_bytes(trace);
  SimpleSearch search(trace, profile, {});
  StepSimulator simulator(trace);
  simulator.use_profile(profile);
  const char* const ops[] = {"*.attention::aten::mm#1",
                             "*.attention::aten::mm#2",
                             "*.attention::aten::mm#3",
                             "*.attention::aten::mm#4",
                             "*.attention::rematch::attention",
                             "*.ffn::aten::mm#1",
                             "*.ffn::aten::mm#2",
                             "*.ffn::aten::mm#3"};
  for (std::uint32_t chosen = 1; chosen < 256; ++chosen) {
    Policy policy;
    for (std::uint32_t i = 0; i < 8; ++i) {
      if ((chosen >> i & 1U) != 0) {
        policy.save.push_back(std::get<Selector>(parse_selector(ops[i])));
      }
    }
    CAPTURE(chosen);
    const StepPrediction step = simulator.simulate(plan_for(policy, trace), Schedule::kOnDemand);
    const auto found = search.fastest_within(step.peak_bytes());
    REQUIRE(found.has_value());
    CHECK(found->figures.recompute <= step.time->recompute);
  }
}

TEST_CASE("the exact front is never worse than the best simple plan") {
  for (const SimpleCase& each : simple_cases()) {
    CAPTURE(each.trace.model, to_string(each.space.schedule));
    SimpleSearch simple(each.trace, each.profile, each.space);
    SearchSpace exact = each.space;
    exact.resolution_ratio = 0;
    FrontSearch search(each.trace, each.profile, exact);
    const Bytes least = simple.lowest().figures.peak;
    for (int step = 0; step <= 10; ++step) {
      const auto point = simple.fastest_within({least.count + least.count * step / 10});
      REQUIRE(point.has_value());
      const auto best = search.fastest_within(point->figures.peak);
      REQUIRE(best.has_value());
      CHECK(best->step_time <= point->step_time);
      const auto slower = simple.lowest_within(point->step_time);
      REQUIRE(slower.has_value());
      CHECK(slower->step_time <= point->step_time);
      CHECK(slower->figures.peak <= point->figures.peak);
    }
  }
}

TEST_CASE("layers with different measured times still share one save list") {
  const Trace trace = testing::toy_llama({.layers = 6, .tokens = 64});
  const Profile profile = testing::made_up_profile(trace, 1);
  SimpleSearch simple(trace, profile, {});
  const Bytes least = simple.lowest().figures.peak;
  const auto point = simple.fastest_within({least.count * 3 / 2});
  REQUIRE(point.has_value());
  const std::vector<std::string> by_layer = treatments(point->plan, trace);
  CHECK(std::set<std::string>(by_layer.begin(), by_layer.end()).size() <= 2);
  CHECK(point->step_time == profile.step_time() + point->figures.recompute);
}

// A rule applies to a module, so both runs of a layer have the same regions and save lists.
TEST_CASE("a layer that runs twice has one rule for both runs") {
  Trace trace = testing::toy_llama({.layers = 4, .tokens = 64});
  const std::string first = trace.scopes[trace.blocks[0].scope].path;
  const std::string second = trace.scopes[trace.blocks[2].scope].path;
  for (TracedScope& scope : trace.scopes) {
    if (scope.path.starts_with(second)) scope.path.replace(0, second.size(), first);
  }
  trace.blocks[2].index = trace.blocks[0].index;
  const Profile profile = profile_by_bytes(trace);
  for (const Schedule schedule : {Schedule::kOnDemand, Schedule::kWholeRegion}) {
    CAPTURE(to_string(schedule));
    SearchSpace space;
    space.schedule = schedule;
    SimpleSearch search(trace, profile, space);
    const FrontPoint lowest = search.lowest();
    const std::int64_t most = search.fastest_within({std::int64_t{1} << 60})->figures.peak.count;
    StepSimulator simulator(trace);
    bool is_checkpointed = false;
    for (int share = 0; share <= 8; ++share) {
      const std::int64_t least = lowest.figures.peak.count;
      const auto point = search.fastest_within({least + (most - least) * share / 8});
      REQUIRE(point.has_value());
      CHECK(simulator.simulate(point->plan, schedule).peak_bytes() == point->figures.peak);
      std::vector<int> types;
      for (const PlannedRegion& region : point->plan.regions) {
        if (region.first_scope == first) types.push_back(region.type);
      }
      CAPTURE(share, types);
      CHECK((types.empty() || (types.size() == 2 && types[0] == types[1])));
      is_checkpointed |= !types.empty();
    }
    CHECK(is_checkpointed);
    const Plan full = plan_for(std::get<Policy>(parse_policy("full")), trace);
    CHECK(lowest.figures.peak <= simulator.simulate(full, schedule).peak_bytes());
  }
}

TEST_CASE(
    "no simple plan has a lower peak than lowest(), and none is faster than keeping everything") {
  const Trace trace = testing::toy_llama({.layers = 3, .tokens = 64});
  const Profile profile = profile_by_bytes(trace);
  SimpleSearch search(trace, profile, {});
  CHECK_FALSE(search.fastest_within({search.lowest().figures.peak.count - 1}).has_value());
  const std::chrono::nanoseconds least = profile.step_time();
  CHECK_FALSE(search.lowest_within(least - std::chrono::nanoseconds(1)).has_value());
  const auto fastest = search.fastest_within({std::int64_t{1} << 60});
  REQUIRE(fastest.has_value());
  CHECK(fastest->step_time == least);
}

}  // namespace
}  // namespace rematch
