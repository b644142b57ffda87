// Tests that layer mixing and the step simulator compute the same peak for a plan, for one or
// several blocks per region, and for one or many ranks.
#include "policies/search/region/span_options.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "policies/predict/device/roofline.h"
#include "policies/predict/device/sharding.h"
#include "policies/predict/step/step.h"
#include "policies/search/front/plan_builder.h"
#include "tests/support/catch.h"
#include "tests/support/made_up_profile.h"
#include "tests/support/random_trace.h"
#include "tests/support/seeds.h"
#include "tests/support/toy_trace.h"

namespace rematch {
namespace {

using std::chrono::nanoseconds;

// The inputs of layer mixing: the sharded step, its profile, its spans and the options of each
// span.
struct Prepared {
  Prepared(const Trace& trace, const SearchSpace& space)
      : Prepared(trace, roofline_profile(trace, *find_device_sheet("h100")), space) {}
  Prepared(const Trace& trace, Profile times, const SearchSpace& space)
      : original(trace),
        step(shard_step(trace, space.world)),
        profile(std::move(times)),
        map(make_spans(step.trace, profile.forward, Repeats::kAreBlocks,
                       space.offload ? Offloading::kAllowed : Offloading::kNever)),
        options(make_options({step.trace, map, profile.forward, space})),
        problem(mix_problem(map, options)),
        builder(original, trace_sha256(original), map, options, space),
        simulator(step.trace) {
    simulator.use_gathered(step.gathered);
  }

  // Returns the option with one region of `size` blocks that starts at `first` and keeps nothing.
  // The region is shorter if fewer blocks remain.
  int bare_region(int first, int size) const {
    const int num_spans = static_cast<int>(map.spans.size());
    int end = first;
    while (end < num_spans && end - first < size && map.spans[end].is_block()) ++end;
    const LocalRange all = {0, map.spans[end - 1].range.end - map.spans[first].range.first};
    std::vector<int> kinds;
    for (int i = first; i < end; ++i) kinds.push_back(map.spans[i].kind);
    const auto& list = options.lists[map.spans[first].kind];
    const auto found = std::find_if(list.begin(), list.end(), [&](const SpanOption& option) {
      const LayerOption& figures = option.figures;
      return option.regions == std::vector<RegionSaves>{{all, {}}} &&
             figures.num_layers == end - first && (end - first == 1 || figures.covers == kinds);
    });
    REQUIRE(found != list.end());
    return static_cast<int>(found - list.begin());
  }

  std::vector<int> bare_regions(int size) const {
    std::vector<int> mix;
    for (int i = 0; i < static_cast<int>(map.spans.size());) {
      mix.push_back(map.spans[i].is_block() ? bare_region(i, size) : 0);
      i += options.lists[map.spans[i].kind][mix.back()].figures.num_layers;
    }
    return mix;
  }

  // Visits every way to choose options for the spans from `span` on.
  void for_each_mix(std::vector<int>& mix, std::size_t span,
                    const std::function<void()>& visit) const {
    if (span == map.spans.size()) return visit();
    const std::vector<SpanOption>& list = options.lists[map.spans[span].kind];
    for (std::size_t chosen = 0; chosen < list.size(); ++chosen) {
      if (!fits(list[chosen].figures, span)) continue;
      mix.push_back(static_cast<int>(chosen));
      for_each_mix(mix, span + list[chosen].figures.num_layers, visit);
      mix.pop_back();
    }
  }

  bool fits(const LayerOption& option, std::size_t span) const {
    if (option.num_layers == 1) return true;
    for (std::size_t i = 0; i < option.covers.size(); ++i) {
      if (span + i >= map.spans.size()) return false;
      if (map.spans[span + i].kind != option.covers[i]) return false;
    }
    return true;
  }

  const Trace& original;
  ShardedStep step;
  Profile profile;
  SpanMap map;
  SpanOptions options;
  MixProblem problem;
  PlanBuilder builder;
  StepSimulator simulator;
};

Bytes peak_of_backward(const StepPrediction& step) {
  return std::max(step.peak_by_phase[static_cast<int>(Phase::kBackward)],
                  step.peak_by_phase[static_cast<int>(Phase::kRecompute)]);
}

nanoseconds time_of_mix(const Prepared& prepared, const std::vector<int>& mix) {
  nanoseconds time{};
  int span = 0;
  for (const int chosen : mix) {
    const LayerOption& figures =
        prepared.options.lists[prepared.map.spans[span].kind][chosen].figures;
    time += figures.time;
    span += figures.num_layers;
  }
  return time;
}

void check_segments(const Trace& trace) {
  for (const Schedule schedule : {Schedule::kOnDemand, Schedule::kWholeRegion}) {
    for (const int world : {1, 8, 64}) {
      SearchSpace space;
      space.schedule = schedule;
      space.world = world;
      space.cuts = false;
      space.most_in_segment = 7;
      Prepared prepared(trace, space);
      for (int size = 1; size <= 7; ++size) {
        CAPTURE(to_string(schedule), world, size);
        const std::vector<int> mix = prepared.bare_regions(size);
        const StepPrediction step =
            prepared.simulator.simulate(prepared.builder.build(mix, "regions"), schedule);
        const Bytes mixed = peak_of_mix(prepared.problem, mix).value();
        CHECK(step.before + mixed == peak_of_backward(step));
      }
    }
  }
}

// For half of the seeds, gives equal blocks equal times, so that they are of the same kind.
Profile profile_of(const Trace& trace, std::uint32_t seed) {
  Profile profile = testing::made_up_profile(trace, seed);
  return seed / 12 % 2 == 0 ? profile : testing::with_equal_times(trace, std::move(profile));
}

TEST_CASE("the predicted peak and time of any mix of options equal those of the simulated step",
          "[property]") {
  std::size_t num_mixes = 0;
  std::size_t most_regions = 0;
  for (std::uint32_t seed = 0; seed < testing::num_seeds(60); ++seed) {
    testing::RandomTraceOptions random;
    random.layers = 2;
    random.ops_per_block = 1 + static_cast<int>(seed % 6);
    random.ops_outside_blocks = static_cast<int>(seed / 2 % 2);
    random.names_say_saves = true;
    const Trace trace = testing::random_trace(seed, random);
    for (const Schedule schedule : {Schedule::kOnDemand, Schedule::kWholeRegion}) {
      SearchSpace space;
      space.schedule = schedule;
      space.resolution_ratio = 0;
      Prepared prepared(trace, profile_of(trace, seed), space);
      std::vector<int> mix;
      prepared.for_each_mix(mix, 0, [&] {
        CAPTURE(seed, to_string(schedule), mix);
        const Plan plan = prepared.builder.build(mix, "mix");
        const StepPrediction step = prepared.simulator.simulate(plan, schedule);
        CHECK(step.before + peak_of_mix(prepared.problem, mix).value() == peak_of_backward(step));
        most_regions = std::max(most_regions, plan.regions.size());
        ++num_mixes;
      });
    }
  }
  CHECK(num_mixes > 1000);
  CHECK(most_regions > 2);
}

// Counts the mixes in which a block offloads. Excludes mixes whose last region offloads, because
// they are not valid.
struct OffloadedMixes {
  std::size_t num_mixes = 0;
  std::size_t num_offloading = 0;
};

void check_offloaded_mixes(const Trace& trace, const Profile& profile, const SearchSpace& space,
                           OffloadedMixes& seen) {
  Prepared prepared(trace, profile, space);
  prepared.simulator.use_profile(profile);
  prepared.simulator.use_link(*space.offload);
  std::vector<int> mix;
  prepared.for_each_mix(mix, 0, [&] {
    const std::optional<Bytes> peak = peak_of_mix(prepared.problem, mix);
    if (!peak) return;
    const Plan plan = prepared.builder.build(mix, "mix");
    CAPTURE(to_string(space.schedule), mix);
    const StepPrediction step = prepared.simulator.simulate(plan, space.schedule);
    const std::int64_t over = (step.before + *peak - peak_of_backward(step)).count;
    CAPTURE(over);
    CHECK(over == 0);
    CHECK(step.host.copied_out == step.host.copied_back);
    CHECK(time_of_mix(prepared, mix) == step.time->recompute + step.time->copies);
    ++seen.num_mixes;
    if (step.host.copied_out.count > 0) ++seen.num_offloading;
  });
}

TEST_CASE(
    "the predicted peak and time of any mix of offloading options equal those of the simulated "
    "step",
    "[property]") {
  OffloadedMixes seen;
  for (std::uint32_t seed = 0; seed < testing::num_seeds(60); ++seed) {
    CAPTURE(seed);
    testing::RandomTraceOptions random;
    random.layers = 3;
    random.ops_per_block = 1 + static_cast<int>(seed % 4);
    random.ops_outside_blocks = static_cast<int>(seed / 2 % 2);
    random.names_say_saves = true;
    const Trace trace = testing::random_trace(seed, random);
    for (const Schedule schedule : {Schedule::kOnDemand, Schedule::kWholeRegion}) {
      SearchSpace space;
      space.schedule = schedule;
      space.resolution_ratio = 0.3;
      space.offload = HostLink{1e6, 2e6, "made up"};
      if (seed % 2 == 1) {
        // Random values have up to a few hundred bytes, so compute hides the smaller copies
        // completely.
        space.offload->hidden_out = nanoseconds(200'000);
        space.offload->hidden_back = nanoseconds(50'000);
      }
      check_offloaded_mixes(trace, profile_of(trace, seed), space, seen);
    }
  }
  CHECK(seen.num_mixes > 1000);
  CHECK(seen.num_offloading > 300);
}

// Removes the backward ops of adds, because autograd runs no op for them. Then the first event in
// the backward of a block is a demand. At that demand, backward holds exactly the bytes that
// remained at the end of the next block's backward.
Trace without_adds(Trace trace) {
  int num_demanded = 0;
  std::vector<BackwardEvent> kept;
  for (BackwardEvent& event : trace.backward) {
    if (event.kind == BackwardEvent::Kind::kDemand) ++num_demanded;
    if (event.kind == BackwardEvent::Kind::kRelease) --num_demanded;
    const bool is_needed = num_demanded > 0 || event.kind != BackwardEvent::Kind::kOp;
    if (is_needed) kept.push_back(std::move(event));
  }
  trace.backward = std::move(kept);
  return trace;
}

// With many tokens, activations determine where the peak occurs. With few tokens, gathered
// parameters do.
TEST_CASE(
    "the predicted peak and time of any mix of regions over several blocks equal those of the "
    "simulated step, on any number of ranks") {
  for (const std::int64_t tokens : {32, 256}) {
    CAPTURE(tokens);
    check_segments(
        without_adds(testing::toy_llama({.layers = 7, .tokens = tokens, .dim = 64, .ffn = 256})));
  }
}

}  // namespace
}  // namespace rematch
