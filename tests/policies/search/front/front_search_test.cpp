#include "policies/search/front/front_search.h"

#include <algorithm>
#include <variant>

#include "policies/catalogue/catalogue.h"
#include "policies/catalogue/resolve.h"
#include "policies/predict/step/held.h"
#include "policies/predict/step/step.h"
#include "tests/support/catch.h"
#include "tests/support/random_trace.h"
#include "tests/support/seeds.h"
#include "tests/support/toy_trace.h"

namespace rematch {
namespace {

using std::chrono::nanoseconds;

// Returns a profile in which the time of an op follows from its bytes and its arithmetic. Views
// take no time.
Profile profile_of(const Trace& trace) {
  Profile profile;
  profile.model = trace.model;
  profile.dimensions = trace.dimensions;
  profile.dtype = trace.dtype;
  profile.trace_sha256 = trace_sha256(trace);
  for (const TracedOp& op : trace.ops) {
    std::int64_t bytes = 0;
    for (const TracedUse& use : op.inputs) {
      bytes += trace.storages[trace.values[use.value].storage].bytes.count;
    }
    for (ValueId output : op.outputs) {
      bytes += trace.storages[trace.values[output].storage].bytes.count;
    }
    const bool is_large = op.op_class == OpClass::kMatmul || op.name == "rematch::attention";
    profile.forward.emplace_back(op.is_view ? 0 : bytes * (is_large ? 9 : 1) + 50);
  }
  for (const BackwardEvent& event : trace.backward) {
    if (event.kind == BackwardEvent::Kind::kOp) profile.backward.emplace_back(300);
  }
  return profile;
}

Trace small_llama() {
  testing::ToySizes sizes;
  sizes.layers = 6;
  sizes.tokens = 64;
  return testing::toy_llama(sizes);
}

std::vector<Plan> baselines(const Trace& trace, const std::string& policies) {
  const auto parsed = parse_policies(policies);
  std::vector<Plan> plans;
  for (const Policy& policy : std::get<std::vector<Policy>>(parsed)) {
    plans.push_back(std::get<Plan>(resolve(policy, trace, NoEffect::kAllow)));
  }
  return plans;
}

const char* const kKnownPolicies =
    "none,full,full_nostop,nth_first(2),nth_first(3),nth_last(2),nth_last(3),skip_nth(2),"
    "skip_nth(3),first_n(1),first_n(2),first_n(3),first_n(4),first_n(5),last_n(2),"
    "skip_list([2,3]),attn_only,ops_block,save_mm,save_compute,sac_titan,sac_titan_2024,"
    "segments(2),segments(3)";

TEST_CASE("the plans of a front name the hidden effects of the step") {
  Trace trace = small_llama();
  trace.hidden = {{{"lib.ops:Rotary", std::vector<int>{1}}}, {{"lib::scale", {2}}}, {"lib::noisy"}};
  FrontSearch search(trace, profile_of(trace), {});
  const Front front = search.front(4, baselines(trace, "full"));
  REQUIRE(!front.points.empty());
  for (const FrontPoint& point : front.points) CHECK(point.plan.hidden == trace.hidden);
  CHECK(search.fastest_within(search.lowest().figures.peak).value().plan.hidden == trace.hidden);
}

// If a plan has several regions with the same path, they apply to the runs of the layer in order.
// So both runs have a region, or neither does.
TEST_CASE("if a layer runs twice, the search chooses regions for each run separately") {
  Trace trace = small_llama();
  const std::string first = trace.scopes[trace.blocks[0].scope].path;
  const std::string second = trace.scopes[trace.blocks[1].scope].path;
  for (TracedScope& scope : trace.scopes) {
    if (scope.path.starts_with(second)) scope.path.replace(0, second.size(), first);
  }
  trace.blocks[1].index = trace.blocks[0].index;
  StepSimulator simulator(trace);
  for (const Schedule schedule : {Schedule::kOnDemand, Schedule::kWholeRegion}) {
    CAPTURE(to_string(schedule));
    SearchSpace space;
    space.schedule = schedule;
    const Front front = FrontSearch(trace, profile_of(trace), space).front(16, {});
    REQUIRE(front.points.size() > 4);
    bool any_differ = false;
    for (const FrontPoint& point : front.points) {
      CHECK(simulator.simulate(point.plan, schedule).peak_bytes() == point.figures.peak);
      std::vector<int> types;
      for (const PlannedRegion& region : point.plan.regions) {
        if (!region.first_scope.starts_with(first)) continue;
        CHECK(region.first_scope == first);
        CHECK(region.last_scope == first);
        types.push_back(region.type);
      }
      CHECK((types.empty() || types.size() == 2));
      any_differ |= types.size() == 2 && types[0] != types[1];
    }
    CHECK(any_differ);
    const std::string text = saves_text(front.points.front().plan, trace);
    CHECK_THAT(text, Catch::Contains("(2 runs)"));
  }
}

TEST_CASE("for each known policy the front has a point that is no worse") {
  const Trace trace = small_llama();
  const Profile profile = profile_of(trace);
  for (const Schedule schedule : {Schedule::kOnDemand, Schedule::kWholeRegion}) {
    CAPTURE(to_string(schedule));
    SearchSpace space;
    space.schedule = schedule;
    space.resolution_ratio = 0;
    FrontSearch search(trace, profile, space);
    const Front front = search.front(16, baselines(trace, kKnownPolicies));
    for (const Baseline& baseline : front.baselines) {
      CAPTURE(baseline.point.plan.policy);
      CHECK(baseline.is_matched);
    }
    CHECK(front.hypervolume >= front.baseline_hypervolume);
    CHECK(front.points.size() >= 8);
  }
}

TEST_CASE("no point dominates another, and no point is below the bounds of its time and peak") {
  const Trace trace = small_llama();
  const Profile profile = profile_of(trace);
  FrontSearch search(trace, profile, {});
  const Front front = search.front(24, {});
  for (std::size_t i = 0; i < front.points.size(); ++i) {
    const FrontPoint& point = front.points[i];
    CAPTURE(i, point.saves);
    CHECK(point.step_time_bound <= point.step_time);
    CHECK(point.step_time_bound >= profile.step_time());
    CHECK(point.figures.peak.count >=
          trace.parameter_bytes.count + held_after_forward(trace, point.plan).kept.count);
    if (i == 0) continue;
    CHECK(front.points[i - 1].figures.peak < point.figures.peak);
    CHECK(front.points[i - 1].step_time > point.step_time);
  }
  CHECK(front.points.back().step_time == profile.step_time());
  CHECK(front.points.back().figures.num_recomputed == 0);
}

void check_budgets(const SearchSpace& space) {
  for (std::uint32_t seed = 0; seed < testing::num_seeds(6); ++seed) {
    CAPTURE(seed);
    testing::RandomTraceOptions options;
    options.layers = 3;
    options.ops_per_block = 8;
    const Trace trace = testing::random_trace(seed, options);
    const Profile profile = profile_of(trace);
    FrontSearch search(trace, profile, space);
    const std::int64_t lowest = search.lowest().figures.peak.count;
    CHECK_FALSE(search.fastest_within({lowest - 1}).has_value());
    std::optional<FrontPoint> before;
    for (int step = 0; step <= 20; ++step) {
      const Bytes budget = {lowest + lowest * step / 20};
      const std::optional<FrontPoint> found = search.fastest_within(budget);
      REQUIRE(found.has_value());
      CHECK(found->figures.peak <= budget);
      if (before) {
        CHECK(found->step_time <= before->step_time);
        CHECK(found->figures.peak >= before->figures.peak);
      }
      before = found;
    }
  }
}

TEST_CASE("no answer exceeds its budget, and with a larger budget the answer is never slower") {
  for (const Schedule schedule : {Schedule::kOnDemand, Schedule::kWholeRegion}) {
    CAPTURE(to_string(schedule));
    SearchSpace space;
    space.schedule = schedule;
    check_budgets(space);
  }
}

// The peak is in the head. Only a plan that holds fewer inputs would lower this peak, and the
// search has no such option.
TEST_CASE("the answer may be a baseline if no mix of options is as good") {
  const Trace trace = testing::toy_llama({.layers = 6, .tokens = 64, .vocab = 4096});
  const Profile profile = profile_of(trace);
  SearchSpace space;
  space.most_in_segment = 1;
  FrontSearch search(trace, profile, space);
  const Bytes alone = search.lowest().figures.peak;
  const Front front = search.front(4, baselines(trace, "segments(2),segments(3)"));
  const FrontPoint& best = std::min_element(front.baselines.begin(), front.baselines.end(),
                                            [](const Baseline& a, const Baseline& b) {
                                              return a.point.figures.peak < b.point.figures.peak;
                                            })
                               ->point;
  REQUIRE(best.figures.peak < alone);
  CHECK(search.lowest().figures.peak == best.figures.peak);
  const std::optional<FrontPoint> found = search.fastest_within(best.figures.peak);
  REQUIRE(found.has_value());
  CHECK(found->plan == best.plan);
  CHECK_FALSE(search.fastest_within({best.figures.peak.count - 1}).has_value());
}

TEST_CASE("if no slowdown is allowed, the plan recomputes only ops that take no time") {
  const Trace trace = small_llama();
  const Profile profile = profile_of(trace);
  FrontSearch search(trace, profile, {});
  CHECK(search.lowest_within_slowdown(0).step_time == profile.step_time());
  const FrontPoint some = search.lowest_within_slowdown(0.05);
  CHECK(static_cast<double>(some.step_time.count()) <=
        1.05 * static_cast<double>(profile.step_time().count()));
  CHECK(some.figures.peak < search.lowest_within_slowdown(0).figures.peak);
  CHECK(search.lowest_within_slowdown(10).figures.peak == search.lowest().figures.peak);
}

// Frozen layers have nothing to recompute, so there is only one plan, and its bound is exact.
TEST_CASE("if a model has only one plan, the bound of a coarse search is exact") {
  Trace trace = small_llama();
  Profile profile = profile_of(trace);
  for (const OpId op : trace.ops.ids()) profile.forward[op] = nanoseconds(1);
  trace.packs.clear();
  std::erase_if(trace.backward,
                [](const BackwardEvent& event) { return event.kind != BackwardEvent::Kind::kOp; });
  profile.trace_sha256 = trace_sha256(trace);
  SearchSpace space;
  space.resolution_ratio = 0.9;
  FrontSearch search(trace, profile, space);
  const Front front = search.front(4, {});
  CHECK(front.time_gap.count() == 0);
  CHECK(front.points.front().step_time_gap().count() == 0);
}

// Each block gathers 64 bytes. The peak is in the backward of the last block. Policy `none` then
// holds gathered parameters of this block only.
TEST_CASE("if blocks gather parameters, the front has a separate point for policy none") {
  const Trace trace = testing::toy_sharded();
  const Profile profile = profile_of(trace);
  const Plan none = resolve_none(trace);
  const Plan holding = baselines(trace, "no_reshard(none)").front();
  StepSimulator simulator(trace);
  for (const Schedule schedule : {Schedule::kOnDemand, Schedule::kWholeRegion}) {
    CAPTURE(to_string(schedule));
    SearchSpace space;
    space.schedule = schedule;
    space.resolution_ratio = 0;
    CHECK_THROWS_WITH(FrontSearch(trace, profile, space), Catch::Contains("gather their param"));
    FrontSearch search(trace, profile, space, none);
    const Front front = search.front(16, baselines(trace, "none,full,no_reshard(none)"));
    REQUIRE(front.none.has_value());
    CHECK(front.reference().plan == none);
    CHECK(front.none->figures.peak == simulator.simulate(none, schedule).peak_bytes());
    CHECK(front.none->step_time > profile.step_time());
    CHECK(front.none->saves == "layers 0-3: keep all but gathered parameters");
    const FrontPoint& nothing = front.nothing_recomputed;
    CHECK(nothing.plan.policy == holding.policy);
    CHECK(plan_sha256(nothing.plan) == plan_sha256(holding));
    CHECK(nothing.figures.peak == simulator.simulate(holding, schedule).peak_bytes());
    CHECK((nothing.figures.peak - front.none->figures.peak).count == 3 * 64);
    CHECK(nothing.saves == "layers 0-3: keep all, including gathered parameters");
    CHECK(front.points.back().plan == nothing.plan);
    for (const FrontPoint& point : front.points) {
      CHECK((point.plan.policy != "none" || point.plan == none));
    }
    for (const Baseline& baseline : front.baselines) CHECK(baseline.is_matched);
  }
}

TEST_CASE("if no block gathers parameters, the front has no separate point for policy none") {
  const Trace trace = small_llama();
  const Profile profile = profile_of(trace);
  FrontSearch search(trace, profile, {}, resolve_none(trace));
  const Front front = search.front(4, {});
  CHECK_FALSE(front.none.has_value());
  CHECK(front.reference().plan.policy == "none");
  CHECK(plan_sha256(front.reference().plan) == plan_sha256(resolve_none(trace)));
}

}  // namespace
}  // namespace rematch
