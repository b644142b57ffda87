// The whole search against every plan of small models: each block left alone, or one region with
// any save set, on every layer apart. All are judged by the step simulator, which knows nothing of
// options, mixes or what layers share.
#include <functional>
#include <map>
#include <optional>

#include "policies/catalogue/catalogue.h"
#include "policies/catalogue/resolve.h"
#include "policies/predict/order.h"
#include "policies/search/front.h"
#include "tests/support/catch.h"
#include "tests/support/made_up_profile.h"
#include "tests/support/random_trace.h"
#include "tests/support/seeds.h"

namespace rematch {
namespace {

constexpr std::size_t kMostPlans = 3'000;

// One region a block with nothing saved, each region of a type of its own.
Plan template_plan(const Trace& trace) {
  const auto full = resolve(std::get<Policy>(parse_policy("full")), trace, NoEffect::kAllow);
  Plan plan = std::get<Plan>(full);
  std::vector<RegionType> types;
  for (PlannedRegion& region : plan.regions) {
    types.push_back(plan.types[static_cast<std::size_t>(region.type)]);
    region.type = static_cast<int>(types.size()) - 1;
  }
  plan.types = std::move(types);
  return plan;
}

// Every way to run the block: nothing, that is no region, or a type with some ops saved.
std::vector<std::optional<RegionType>> ways_to_run(const Trace& trace, const RegionType& unsaved,
                                                   OpRange range, Schedule schedule) {
  std::vector<std::size_t> ops;
  for (std::size_t i = 0; i < unsaved.ops.size(); ++i) {
    const TracedOp& op = trace.ops[static_cast<std::size_t>(range.first) + i];
    if (!op.is_view && op.writes.empty()) ops.push_back(i);
  }
  std::vector<std::optional<RegionType>> ways = {std::nullopt};
  for (std::uint32_t chosen = 0; chosen < (1U << ops.size()); ++chosen) {
    RegionType type = unsaved;
    for (std::size_t i = 0; i < ops.size(); ++i) {
      if ((chosen >> i & 1) != 0) type.ops[ops[i]].treatment = Treatment::kSave;
    }
    if (schedule == Schedule::kOnDemand) choose_order(trace, range.first, range.end, type);
    ways.push_back(std::move(type));
  }
  return ways;
}

using Figures = std::pair<std::int64_t, std::int64_t>;  // peak, recompute time

// By peak: the fastest of all plans. Nothing if they are too many.
std::optional<std::map<std::int64_t, std::int64_t>> every_plan(const Trace& trace,
                                                               const Profile& profile,
                                                               Schedule schedule) {
  Plan whole = template_plan(trace);
  std::vector<std::vector<std::optional<RegionType>>> ways;
  std::size_t num_plans = 1;
  const std::vector<OpRange> ranges = region_ranges(trace, whole);
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    ways.push_back(ways_to_run(trace, whole.types[i], ranges[i], schedule));
    num_plans *= ways.back().size();
    if (num_plans > kMostPlans) return std::nullopt;
  }
  StepSimulator simulator(trace);
  simulator.use_profile(profile);
  std::map<std::int64_t, std::int64_t> fastest;
  std::vector<LocatedRegion> regions;
  const std::function<void(std::size_t)> go = [&](std::size_t layer) {
    if (layer == ranges.size()) {
      const StepPrediction step = simulator.simulate(regions, schedule);
      const std::int64_t time = step.time->recompute.count();
      const auto [found, is_new] = fastest.try_emplace(step.peak_bytes().count, time);
      found->second = std::min(found->second, time);
      return;
    }
    for (const std::optional<RegionType>& way : ways[layer]) {
      if (way) regions.push_back({ranges[layer], &*way});
      go(layer + 1);
      if (way) regions.pop_back();
    }
  };
  go(0);
  return fastest;
}

// No plan is faster than what the search finds at its peak, but for the gaps that it admits.
void check_against_every_plan(const SearchSpace& space, int num_seeds) {
  int num_models = 0;
  bool some_gap = false;
  for (std::uint32_t seed = 0; seed < testing::num_seeds(num_seeds); ++seed) {
    CAPTURE(seed);
    testing::RandomTraceOptions options;
    options.layers = 2 + static_cast<int>(seed % 2);
    options.ops_per_block = 1 + static_cast<int>(seed % 5);
    const Trace trace = testing::random_trace(seed, options);
    const Profile profile = testing::made_up_profile(trace, seed);
    const auto all = every_plan(trace, profile, space.schedule);
    if (!all) continue;
    ++num_models;
    FrontSearch search(trace, profile, space);
    const Front front = search.front(2, {});
    some_gap |= front.time_gap.count() > 0 || front.transient_gap.count > 0;
    for (const auto& [peak, time] : *all) {
      CAPTURE(peak, time);
      const Bytes budget = Bytes{peak} + front.transient_gap;
      const std::optional<FrontPoint> found = search.fastest_within(budget);
      REQUIRE(found.has_value());
      CHECK(found->figures.peak <= budget);
      CHECK(found->figures.recompute.count() <= time + front.time_gap.count());
    }
  }
  CHECK(num_models > 10);
  CHECK(some_gap == (space.resolution_ratio > 0));
}

TEST_CASE("no plan of a small model is better than the search's", "[property]") {
  for (const Schedule schedule : {Schedule::kOnDemand, Schedule::kWholeRegion}) {
    CAPTURE(to_string(schedule));
    SearchSpace space;
    space.schedule = schedule;
    space.resolution_ratio = 0;
    check_against_every_plan(space, 40);
  }
}

TEST_CASE("no plan of a small model is better than a coarse search's by more than it admits",
          "[property]") {
  for (const Reach reach : {Reach::kAll, Reach::kHull}) {
    SearchSpace space;
    space.reach = reach;
    space.resolution_ratio = 0.2;
    check_against_every_plan(space, 40);
  }
}

}  // namespace
}  // namespace rematch
