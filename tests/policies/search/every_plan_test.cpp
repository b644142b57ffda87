// Compares the search with every plan of small models. In a plan, each block runs without
// checkpointing, or is divided into regions with any save sets. Alternatively, two adjacent blocks
// form one region. The step simulator computes the peak and time of each plan, without the search's
// code.
#include <algorithm>
#include <functional>
#include <map>
#include <optional>

#include "policies/catalogue/resolve.h"
#include "policies/predict/region/order.h"
#include "policies/predict/region/trace_index.h"
#include "policies/predict/step/step.h"
#include "policies/predict/step/stored.h"
#include "policies/search/front/front_search.h"
#include "tests/support/catch.h"
#include "tests/support/made_up_profile.h"
#include "tests/support/random_trace.h"
#include "tests/support/seeds.h"
#include "tests/support/toy_trace.h"
#include "tests/support/trace_builder.h"

namespace rematch {
namespace {

using std::chrono::nanoseconds;

constexpr std::size_t kMaxPlans = 4'000;

struct TypedRange {
  OpRange range;
  RegionType type;
};
using BlockSplit =
    std::vector<TypedRange>;  // one way to run a block: its regions, in forward order
using BlockSplits = std::vector<BlockSplit>;

RegionType type_of(const Trace& trace, OpRange range, std::uint32_t chosen,
                   const std::vector<std::size_t>& savable, Schedule schedule) {
  RegionType type;
  type.ops.resize(static_cast<std::size_t>(range.end - range.first));
  for (PlannedOp& op : type.ops) op.treatment = Treatment::kRecompute;
  for (std::size_t i = 0; i < savable.size(); ++i) {
    if ((chosen >> i & 1) != 0) type.ops[savable[i]].treatment = Treatment::kSave;
  }
  if (schedule == Schedule::kOnDemand) choose_order(trace, range.first, range.end, type);
  return type;
}

// Returns whether backward or recompute may read this op's results. The search never saves other
// results, although this would avoid running their ops when a whole region is recomputed.
bool is_read(const RegionGraph& graph, int op) {
  const std::vector<int>& outputs = graph.ops[static_cast<std::size_t>(op)].outputs;
  const auto is_output = [&](const RegionUse& use) {
    return std::find(outputs.begin(), outputs.end(), use.value) != outputs.end();
  };
  for (int reader = 0; reader < graph.stop; ++reader) {
    const std::vector<RegionUse>& reads = graph.ops[static_cast<std::size_t>(reader)].reads;
    if (std::any_of(reads.begin(), reads.end(), is_output)) return true;
  }
  return std::any_of(graph.slots.begin(), graph.slots.end(),
                     [&](const RegionSlot& slot) { return is_output(slot.use); });
}

// Returns one region type for every choice of saved ops.
std::vector<RegionType> types_of(const Trace& trace, OpRange range, Schedule schedule) {
  const RegionGraph graph = make_region_graph(trace, range);
  std::vector<std::size_t> savable;
  for (const OpId op : range.ids()) {
    const TracedOp& traced = trace.ops[op];
    if (!traced.is_view && traced.writes.empty() && is_read(graph, op - range.first)) {
      savable.push_back(static_cast<std::size_t>(op - range.first));
    }
  }
  std::vector<RegionType> types;
  for (std::uint32_t chosen = 0; chosen < (1U << savable.size()); ++chosen) {
    types.push_back(type_of(trace, range, chosen, savable, schedule));
  }
  return types;
}

// Returns the scopes directly inside `parent` that contain ops.
std::vector<ScopeId> children_of(const Trace& trace, ScopeId parent) {
  std::vector<ScopeId> children;
  for (const ScopeId id : trace.scopes.ids()) {
    const TracedScope& scope = trace.scopes[id];
    if (scope.parent == parent && scope.first_op < scope.end_op) {
      children.push_back(static_cast<ScopeId>(id));
    }
  }
  return children;
}

// Counts how often the trace opens a scope of this name.
std::size_t times_opened(const Trace& trace, ScopeId scope) {
  const std::string& path = trace.scopes[scope].path;
  return static_cast<std::size_t>(
      std::count_if(trace.scopes.begin(), trace.scopes.end(),
                    [&](const TracedScope& other) { return other.path == path; }));
}

// Visits every way to make disjoint regions from the scopes children[next], children[next + 1], ...
// and the scopes inside them. A region is one or several consecutive scopes. Passes each list of
// regions to `then`.
void cut(const Trace& trace, const std::vector<ScopeId>& children, std::size_t next,
         const std::vector<OpRange>& regions,
         const std::function<void(const std::vector<OpRange>&)>& then) {
  if (next == children.size()) return then(regions);
  cut(trace, children_of(trace, children[next]), 0, regions,
      [&](const std::vector<OpRange>& more) { cut(trace, children, next + 1, more, then); });
  if (times_opened(trace, children[next]) > 1) return;
  for (std::size_t last = next; last < children.size(); ++last) {
    if (times_opened(trace, children[last]) > 1) continue;
    std::vector<OpRange> more = regions;
    more.push_back({trace.scopes[children[next]].first_op, trace.scopes[children[last]].end_op});
    cut(trace, children, last + 1, more, then);
  }
}

// Returns every way to divide the block into regions, without duplicates. A scope that contains
// only another scope would cause duplicates.
std::vector<std::vector<OpRange>> cuts_of(const Trace& trace, ScopeId block) {
  const TracedScope& whole = trace.scopes[block];
  std::vector<std::vector<OpRange>> cuts = {{{whole.first_op, whole.end_op}}};
  cut(trace, children_of(trace, block), 0, {}, [&](const std::vector<OpRange>& regions) {
    if (std::find(cuts.begin(), cuts.end(), regions) == cuts.end()) cuts.push_back(regions);
  });
  return cuts;
}

// Returns whether the storage is freed, and only ops inside the range read or pack it.
bool is_alone_in(const Trace& trace, OpRange range, StorageId storage) {
  const auto is_of = [&](ValueId value) { return trace.values[value].storage == storage; };
  for (const OpId op : trace.ops.ids()) {
    if (op >= range.first && op < range.end) continue;
    const std::vector<TracedUse>& inputs = trace.ops[op].inputs;
    if (std::any_of(inputs.begin(), inputs.end(),
                    [&](const TracedUse& use) { return is_of(use.value); })) {
      return false;
    }
  }
  const std::vector<PackId> inside = packs_of(trace, range);
  for (const PackId pack : trace.packs.ids()) {
    const bool is_inside = std::find(inside.begin(), inside.end(), pack) != inside.end();
    if (!is_inside && is_of(trace.packs[pack].value)) return false;
  }
  return trace.storages[storage].freed_at.has_value();
}

// Returns three variants of the region: with its inputs offloaded, with all its saves offloaded,
// and with both. Offloads only storages that pass is_alone_in().
std::vector<RegionType> offloading(const Trace& trace, OpRange range, const RegionType& saving,
                                   const std::vector<RegionInput>& inputs) {
  RegionType all = saving;
  for (std::size_t op = 0; op < all.ops.size(); ++op) {
    const TracedOp& traced = trace.ops[range.first + static_cast<int>(op)];
    all.ops[op].name = traced.name;
    const bool leaves = std::all_of(
        traced.outputs.begin(), traced.outputs.end(),
        [&](ValueId output) { return is_alone_in(trace, range, trace.values[output].storage); });
    if (all.ops[op].treatment == Treatment::kSave && leaves) {
      all.ops[op].treatment = Treatment::kOffload;
    }
  }
  std::vector<RegionType> types = {saving, all, all};
  types[0].stored_inputs[Store::kHost] = types[1].stored_inputs[Store::kHost] = inputs;
  std::erase_if(types, [](const RegionType& type) { return !moves_anything(type); });
  return types;
}

std::vector<RegionInput> inputs_that_leave(const Trace& trace, OpRange range) {
  const RegionGraph graph = make_region_graph(trace, range);
  std::vector<RegionInput> inputs = movable_inputs(trace, graph);
  std::erase_if(inputs, [&](const RegionInput& input) {
    const RegionUse& use = graph.ops[static_cast<std::size_t>(input.op)]
                               .reads[static_cast<std::size_t>(input.argument)];
    const int storage = graph.values[static_cast<std::size_t>(use.value)].storage;
    return !is_alone_in(trace, range, graph.storage_ids[static_cast<std::size_t>(storage)]);
  });
  return inputs;
}

// Returns every way to run the block: any division into regions, and any saved ops in each region.
// Returns nullopt if there are too many.
std::optional<BlockSplits> ways_to_run(const Trace& trace, ScopeId block,
                                       const SearchSpace& space) {
  const Schedule schedule = space.schedule;
  BlockSplits ways;
  for (const std::vector<OpRange>& ranges : cuts_of(trace, block)) {
    // If a region packs nothing, backward never demands its values, so no demand brings its
    // offloaded values back. The search never uses such a region.
    const bool is_idle = std::any_of(ranges.begin(), ranges.end(),
                                     [&](OpRange range) { return packs_of(trace, range).empty(); });
    if (is_idle && space.offload) continue;
    BlockSplits of_cut = {{}};
    for (const OpRange range : ranges) {
      BlockSplits longer;
      for (const RegionType& type : types_of(trace, range, schedule)) {
        for (const BlockSplit& way : of_cut) {
          longer.push_back(way);
          longer.back().push_back({range, type});
        }
      }
      of_cut = std::move(longer);
      if (of_cut.size() > kMaxPlans) return std::nullopt;
    }
    ways.insert(ways.end(), of_cut.begin(), of_cut.end());
    const bool is_whole = ranges == cuts_of(trace, block).front();
    for (const BlockSplit& way : is_whole&& space.offload ? of_cut : BlockSplits()) {
      for (RegionType& type :
           offloading(trace, way[0].range, way[0].type, inputs_that_leave(trace, way[0].range))) {
        ways.push_back({{way[0].range, std::move(type)}});
      }
    }
  }
  return ways;
}

// Finds the fastest plan for each peak. In a plan, each block runs in one of the ways of
// ways_to_run(), or two adjacent blocks form one region that keeps nothing. Returns nullopt if
// there are too many plans.
class EveryPlan {
 public:
  EveryPlan(const Trace& trace, const Profile& profile, const SearchSpace& space)
      : trace_(trace), space_(space), schedule_(space.schedule), simulator_(trace) {
    simulator_.use_profile(profile);
    if (space.offload) simulator_.use_link(*space.offload);
  }

  std::optional<std::map<std::int64_t, std::int64_t>> run() {
    std::size_t num_plans = 1;
    for (const TracedBlock& block : trace_.blocks) {
      auto ways = ways_to_run(trace_, block.scope, space_);
      if (!ways) return std::nullopt;
      num_plans *= ways->size();
      if (num_plans > kMaxPlans) return std::nullopt;
      ways_.push_back(std::move(*ways));
    }
    go(0);
    return fastest_;
  }

  int num_segments() const { return num_segments_; }

 private:
  void go(std::size_t layer) {
    if (layer == ways_.size()) return judge();
    for (const BlockSplit& way : ways_[layer]) {
      for (const TypedRange& region : way) regions_.push_back({region.range, &region.type});
      go(layer + 1);
      regions_.resize(regions_.size() - way.size());
    }
    if (layer + 1 == ways_.size()) return;
    const TracedScope& first = scope_of(layer);
    const TracedScope& second = scope_of(layer + 1);
    if (first.end_op != second.first_op) return;
    ++num_segments_;
    const OpRange both = {first.first_op, second.end_op};
    const RegionType bare = type_of(trace_, both, 0, {}, schedule_);
    regions_.push_back({both, &bare});
    go(layer + 2);
    regions_.pop_back();
  }

  void judge() {
    const StepPrediction step = simulator_.simulate(regions_, schedule_);
    std::int64_t time = step.time->recompute.count();
    time += step.time->copies.count();
    const auto [found, is_new] = fastest_.try_emplace(step.peak_bytes().count, time);
    found->second = std::min(found->second, time);
  }

  const TracedScope& scope_of(std::size_t layer) const {
    return trace_.scopes[trace_.blocks[layer].scope];
  }

  const Trace& trace_;
  const SearchSpace& space_;
  Schedule schedule_;
  StepSimulator simulator_;
  std::vector<BlockSplits> ways_;
  std::vector<LocatedRegion> regions_;
  std::map<std::int64_t, std::int64_t> fastest_;
  int num_segments_ = 0;
};

// Maps a peak to the additional time of the fastest plan with this peak, compared with keeping
// everything.
using TimesByPeak = std::map<std::int64_t, std::int64_t>;

// Compares every plan with the plan that the search finds for the same peak. The search's plan may
// be slower only by the gaps that the search reports. The search's lower bound on the step time
// must hold for every plan. Returns the most bytes that a plan of the search copies to the host.
Bytes check_no_plan_is_better(const TimesByPeak& plans, const Profile& profile, const Front& front,
                              FrontSearch& search) {
  Bytes most_copied;
  for (const auto& [peak, time] : plans) {
    CAPTURE(peak, time);
    const Bytes budget = Bytes{peak} + front.transient_gap;
    const std::optional<FrontPoint> found = search.fastest_within(budget);
    REQUIRE(found.has_value());
    CHECK(found->figures.peak <= budget);
    const nanoseconds extra = found->step_time - profile.step_time();
    CHECK(extra.count() <= time + front.time_gap.count());
    most_copied = std::max(most_copied, found->figures.host.copied_out);
    CHECK(search.step_time_bound(Bytes{peak}).count() <= profile.step_time().count() + time);
  }
  return most_copied;
}

SearchSpace offloading_space(Schedule schedule) {
  SearchSpace space;
  space.schedule = schedule;
  space.resolution_ratio = 0;
  space.offload =
      HostLink{2e9, 4e9, "made up", std::chrono::nanoseconds(60), std::chrono::nanoseconds(20)};
  space.most_offloaded_sets = 1000;
  return space;
}

void check_against_every_plan(const SearchSpace& space, int num_seeds) {
  int num_models = 0;
  int num_segments = 0;
  bool some_gap = false;
  Bytes most_copied;
  for (std::uint32_t seed = 0; seed < testing::num_seeds(num_seeds); ++seed) {
    CAPTURE(seed);
    testing::RandomTraceOptions options;
    options.layers = 2 + static_cast<int>(seed % 2);
    options.ops_per_block = 1 + static_cast<int>(seed % 5);
    options.ops_outside_blocks = static_cast<int>(seed / 2 % 2);
    options.names_say_saves = true;
    const Trace trace = testing::random_trace(seed, options);
    Profile profile = testing::made_up_profile(trace, seed);
    // Covers equal blocks that the search treats as one kind, and equal blocks with different
    // times.
    if (seed / 20 % 2 == 1) profile = testing::with_equal_times(trace, std::move(profile));
    EveryPlan every(trace, profile, space);
    const auto all = every.run();
    if (!all) continue;
    num_segments += every.num_segments();
    ++num_models;
    FrontSearch search(trace, profile, space);
    const Front front = search.front(2, {});
    some_gap |= front.time_gap.count() > 0 || front.transient_gap.count > 0;
    most_copied = std::max(most_copied, check_no_plan_is_better(*all, profile, front, search));
  }
  CHECK(num_models > 10);
  CHECK(num_segments > 0);
  CHECK(some_gap == (space.resolution_ratio > 0 || space.offload));
  CHECK((most_copied.count > 0) == space.offload.has_value());
}

TEST_CASE("no plan of a small model is better than the plan that the search finds", "[property]") {
  for (const Schedule schedule : {Schedule::kOnDemand, Schedule::kWholeRegion}) {
    CAPTURE(to_string(schedule));
    SearchSpace space;
    space.schedule = schedule;
    space.resolution_ratio = 0;
    check_against_every_plan(space, 300);
  }
}

TEST_CASE(
    "no plan of a model with gathered parameters is better than the plan that the search finds",
    "[property]") {
  for (const int layers : {2, 3}) {
    CAPTURE(layers);
    const Trace trace = testing::toy_sharded(layers);
    for (std::uint32_t seed = 0; seed < testing::num_seeds(20); ++seed) {
      CAPTURE(seed);
      const Profile profile = testing::made_up_profile(trace, seed);
      for (const Schedule schedule : {Schedule::kOnDemand, Schedule::kWholeRegion}) {
        CAPTURE(to_string(schedule));
        SearchSpace space;
        space.schedule = schedule;
        space.resolution_ratio = 0;
        auto all = EveryPlan(trace, profile, space).run();
        REQUIRE(all.has_value());
        FrontSearch search(trace, profile, space, resolve_none(trace));
        const Front front = search.front(2, {});
        const std::int64_t of_none = (front.none->step_time - profile.step_time()).count();
        const auto [same, is_new] = all->try_emplace(front.none->figures.peak.count, of_none);
        same->second = std::min(same->second, of_none);
        check_no_plan_is_better(*all, profile, front, search);
      }
    }
  }
}

TEST_CASE("in a small model, a coarse search finds a plan within its stated bound of the best plan",
          "[property]") {
  for (const Reach reach : {Reach::kAll, Reach::kHull}) {
    SearchSpace space;
    space.reach = reach;
    space.resolution_ratio = 0.2;
    check_against_every_plan(space, 300);
  }
}

// Copies cost about as much as recompute, so that neither is always better.
TEST_CASE("no offloading plan of a small model is better than the plan that the search finds",
          "[property]") {
  for (const Schedule schedule : {Schedule::kOnDemand, Schedule::kWholeRegion}) {
    CAPTURE(to_string(schedule));
    check_against_every_plan(offloading_space(schedule), 300);
  }
}

// Compares the search with every plan, with equal times for equal blocks. Returns the plan that the
// search finds at the lowest peak of all plans.
FrontPoint check_equal_blocks(const Trace& trace, const SearchSpace& space) {
  const Profile profile =
      testing::with_equal_times(trace, testing::made_up_profile(trace, /*seed=*/1));
  const auto all = EveryPlan(trace, profile, space).run();
  REQUIRE(all.has_value());
  FrontSearch search(trace, profile, space);
  const Front front = search.front(2, {});
  check_no_plan_is_better(*all, profile, front, search);
  return search.fastest_within(Bytes{all->begin()->first}).value();
}

// Block 0 reads 256 bytes and keeps 1 KiB. If the 1 KiB is offloaded, the peak is in the backward
// of block 0. Offloading the 256 bytes too would then only take longer.
TEST_CASE("a block may offload both its saves and its inputs") {
  testing::TraceBuilder builder("three_blocks");
  ValueId x = builder.outside({64}, "float32", /*needs_grad=*/true);
  x = builder.call("aten::neg", {x}, {64});
  for (int layer = 0; layer < 3; ++layer) {
    const auto block = builder.scope("blocks", layer);
    const std::int64_t width = layer == 1 ? 4 : 256;
    const ValueId wide = builder.call("aten::sigmoid", {x}, {width}, {{}, {0}});
    x = builder.call("aten::sum", {wide}, {4});
  }
  check_equal_blocks(builder.finish(), offloading_space(Schedule::kOnDemand));
}

// The input of block 0 always stays on the device, because the op that made it also saved it. Block
// 1 has the same ops and reads 256 bytes that nothing else saves.
TEST_CASE("equal blocks may offload different tensors") {
  testing::TraceBuilder builder("four_blocks");
  ValueId x = builder.outside({64}, "float32", /*needs_grad=*/true);
  x = builder.call("aten::sigmoid", {x}, {64}, {{}, {0}});
  for (int layer = 0; layer < 4; ++layer) {
    const auto block = builder.scope("blocks", layer);
    x = layer == 3 ? builder.call("aten::exp", {x}, {1024}, {{}, {0}})
                   : builder.call("aten::silu", {x}, {64}, {{0}, {}});
  }
  builder.call("aten::sum", {x}, {1});
  const FrontPoint lowest =
      check_equal_blocks(builder.finish(), offloading_space(Schedule::kOnDemand));
  CHECK(lowest.figures.host.copied_out == Bytes{256});
  CHECK(lowest.figures.recompute.count() == 0);
}

// Before the backward of block 1, the head has a gradient of 4 KiB, and the blocks still hold
// everything. Block 0 is equal to block 1, but no such gradient exists before its backward.
TEST_CASE("equal blocks may begin backward with gradients of different sizes") {
  testing::TraceBuilder builder("two_blocks_and_a_head");
  ValueId x = builder.outside({64}, "float32", /*needs_grad=*/true);
  x = builder.call("aten::neg", {x}, {64});
  for (int layer = 0; layer < 2; ++layer) {
    const auto block = builder.scope("blocks", layer);
    x = builder.call("aten::silu", {x}, {64}, {{0}, {}});
    x = builder.call("aten::silu", {x}, {64}, {{0}, {}});
  }
  x = builder.call("aten::neg", {x}, {64});
  const ValueId wide = builder.call("aten::expand", {x}, {1024});
  const ValueId narrow = builder.call("aten::sum", {wide}, {4});
  builder.call("aten::mse_loss", {narrow}, {1}, {{0}, {}});
  const Trace trace = builder.finish();
  for (const Schedule schedule : {Schedule::kOnDemand, Schedule::kWholeRegion}) {
    CAPTURE(to_string(schedule));
    SearchSpace space = offloading_space(schedule);
    space.offload.reset();
    check_equal_blocks(trace, space);
  }
}

}  // namespace
}  // namespace rematch
