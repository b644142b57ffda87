// Compares span pricing with the step simulator, on random traces and plans. The bytes of all spans
// must add up to what the step holds between forward and backward. In backward, a span needs its
// own transient bytes and the bytes that earlier spans hold. The highest of these sums must equal
// the step's peak.
#include "policies/search/region/span_pricing.h"
#include "policies/predict/region/trace_index.h"

#include <algorithm>
#include <set>

#include "policies/catalogue/catalogue.h"
#include "policies/catalogue/resolve.h"
#include "policies/predict/region/simulator.h"
#include "policies/predict/step/held.h"
#include "policies/predict/step/step.h"
#include "tests/support/catch.h"
#include "tests/support/made_up_profile.h"
#include "tests/support/random_plan.h"
#include "tests/support/random_trace.h"
#include "tests/support/seeds.h"
#include "tests/support/trace_builder.h"

namespace rematch::testing {
namespace {

struct TypedRegion {
  OpRange range;
  RegionType type;
};
using TypedRegions = std::vector<TypedRegion>;

// Returns a plan's regions with their op ranges, in forward order.
TypedRegions regions_of(const Trace& trace, const Plan& plan) {
  const std::vector<OpRange> ranges = region_ranges(trace, plan);
  TypedRegions regions;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    regions.push_back({ranges[i], plan.types.at(plan.regions[i].type)});
  }
  std::sort(regions.begin(), regions.end(),
            [](const auto& a, const auto& b) { return a.range.first < b.range.first; });
  return regions;
}

// Returns the index of the first span after `first` that begins outside all regions.
int end_of_row(const SpanMap& map, const TypedRegions& regions, int first) {
  int end = first + 1;
  for (const TypedRegion& region : regions) {
    while (region.range.first < map.spans[end - 1].range.end &&
           map.spans[end - 1].range.end < region.range.end) {
      ++end;
    }
  }
  return end;
}

// A region, with its range relative to the priced group of spans.
struct LocalRegion {
  LocalRange range;
  RegionType type;
};

RegionOption play(const RegionGraph& graph, const LocalRegion& region, const OpTimes& times,
                  Schedule schedule) {
  const RegionSimulation simulation = simulate_region(graph, region.type, schedule);
  RegionOption played{region.range, {}, {}};
  BlockPoint& point = played.point;
  point.transient = simulation.boundary_peak;
  point.kept = simulation.kept;
  const std::vector<bool> kept = kept_values(graph, region.type.ops);
  std::set<StorageId> storages;
  for (std::size_t value = 0; value < kept.size(); ++value) {
    if (kept[value]) storages.insert(graph.storage_ids[graph.values[value].storage]);
  }
  played.keeps.assign(storages.begin(), storages.end());
  point.num_recomputed = static_cast<int>(simulation.executed.size());
  for (const ExecutedOp& executed : simulation.executed) point.recompute += times[executed.op];
  return played;
}

std::vector<PieceFigures> pieces_of(SpanPricer& pricer, const std::vector<LocalRegion>& regions,
                                    const OpTimes& times, Schedule schedule) {
  SpanTally tally(pricer);
  std::vector<PieceFigures> pieces = {tally.shared()};
  int done = 0;
  for (const LocalRegion& region : regions) {
    if (done < region.range.first)
      pieces.push_back(tally.add_unmanaged({done, region.range.first}));
    done = region.range.end;
    const RegionGraph& graph = pricer.graph(region.range);
    if (!graph.slots.empty())
      pieces.push_back(tally.add_region(play(graph, region, times, schedule)));
  }
  if (done < pricer.whole().end) pieces.push_back(tally.add_unmanaged({done, pricer.whole().end}));
  return pieces;
}

// The costs of a whole step. Excludes bytes that were held before the step.
struct Priced {
  Bytes held;
  Bytes peak;  // peak in backward
  std::int64_t num_recomputed = 0;
  std::chrono::nanoseconds recompute{};
};

Priced price(const Trace& trace, const SpanMap& map, const OpTimes& times,
             const TypedRegions& regions, Schedule schedule) {
  Priced all;
  all.peak = map.most_born;
  for (int first = 0; first < static_cast<int>(map.spans.size());) {
    const int end = end_of_row(map, regions, first);
    const OpId begin = map.spans[first].range.first;
    std::vector<LocalRegion> inside;
    for (const TypedRegion& region : regions) {
      if (region.range.first < begin || region.range.end > map.spans[end - 1].range.end) continue;
      inside.push_back({{region.range.first - begin, region.range.end - begin}, region.type});
    }
    const SearchSpace space{.schedule = schedule};
    SpanPricer pricer({trace, map, times, space}, first, end - first);
    for (const PieceFigures& piece : pieces_of(pricer, inside, times, schedule)) {
      all.peak = std::max(all.peak, all.held + piece.transient);
      all.held += piece.held;
      all.recompute += piece.recompute;
      all.num_recomputed += piece.num_recomputed;
    }
    first = end;
  }
  return all;
}

// Returns whether the trace meets an assumption of span pricing: if a span reads a result of an
// earlier span, it also saves this result for backward.
bool saves_what_it_reads(const Trace& trace, const SpanMap& map) {
  const auto span_of = [&map](OpId op) {
    int index = 0;
    while (map.spans[index].range.end <= op) ++index;
    return index;
  };
  IdTable<StorageId, std::set<int>> savers(trace.storages.size());
  for (const TracedPack& pack : trace.packs) {
    const OpId op(std::max(0, pack.at_op.index - 1));
    savers[trace.values[pack.value].storage].insert(span_of(op));
  }
  IdTable<StorageId, std::optional<int>> maker(trace.storages.size());
  for (const OpId op : trace.ops.ids()) {
    const int here = span_of(op);
    for (const TracedUse& use : trace.ops[op].inputs) {
      const StorageId storage = trace.values[use.value].storage;
      const bool is_from_earlier = maker[storage] && *maker[storage] < here;
      if (is_from_earlier && !savers[storage].contains(here)) return false;
    }
    for (const ValueId output : trace.ops[op].outputs) {
      std::optional<int>& made_by = maker[trace.values[output].storage];
      if (!made_by) made_by = here;
    }
  }
  return true;
}

Bytes peak_of_backward(const StepPrediction& step) {
  return std::max(step.peak_by_phase[static_cast<int>(Phase::kBackward)],
                  step.peak_by_phase[static_cast<int>(Phase::kRecompute)]);
}

TEST_CASE(
    "the predicted bytes and times of a random plan's parts add up to those of the simulated "
    "step") {
  int num_cases = 0;
  for (std::uint32_t seed = 0; seed < num_seeds(300); ++seed) {
    const Trace trace =
        random_trace(seed, {.layers = 4, .ops_per_block = 8, .names_say_saves = true});
    const Profile profile = made_up_profile(trace, seed);
    const SpanMap map = make_spans(trace, profile.forward);
    if (!saves_what_it_reads(trace, map)) continue;
    const Plan plan = random_plan(trace, seed);
    StepSimulator simulator(trace);
    simulator.use_profile(profile);
    for (const Schedule schedule : {Schedule::kOnDemand, Schedule::kWholeRegion}) {
      CAPTURE(seed, to_string(schedule));
      const StepPrediction step = simulator.simulate(plan, schedule);
      const Priced priced = price(trace, map, profile.forward, regions_of(trace, plan), schedule);
      const Bytes peak = peak_of_backward(step) - step.before;
      CHECK(priced.held.count == held_after_forward(trace, plan).total().count);
      CHECK(priced.num_recomputed == step.recomputed_ops);
      CHECK(priced.recompute == step.time.value().recompute);
      CHECK(priced.peak.count == peak.count);
      ++num_cases;
    }
  }
  CHECK(num_cases > 100);
}

// Builds four blocks of one op, which saves its input and its output. Each result is thus saved
// twice, and the block that made it releases it last.
TEST_CASE("tensors that two adjacent blocks save are held until backward of the earlier block") {
  TraceBuilder builder("neighbours");
  ValueId x = builder.outside({64, 64}, "float32", /*needs_grad=*/true);
  for (int layer = 0; layer < 4; ++layer) {
    const auto block = builder.scope("blocks", layer);
    const std::int64_t size = layer == 0 ? 64 : 8;
    x = builder.call("aten::sigmoid", {x}, {size, size}, {{0}, {0}});
  }
  const Trace trace = builder.finish();
  const OpTimes times(trace.ops.size());
  const SpanMap map = make_spans(trace, times);
  for (const char* policy : {"none", "full", "only_list([0,2])", "only_list([1,3])"}) {
    CAPTURE(policy);
    const auto plan = resolve(std::get<Policy>(parse_policy(policy)), trace);
    const TypedRegions regions = regions_of(trace, std::get<Plan>(plan));
    for (const Schedule schedule : {Schedule::kOnDemand, Schedule::kWholeRegion}) {
      const StepPrediction step = StepSimulator(trace).simulate(std::get<Plan>(plan), schedule);
      const Bytes peak = peak_of_backward(step) - step.before;
      CHECK(price(trace, map, times, regions, schedule).peak.count == peak.count);
    }
  }
}

}  // namespace
}  // namespace rematch::testing
