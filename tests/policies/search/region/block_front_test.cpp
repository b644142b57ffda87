#include "policies/search/region/block_front.h"
#include "policies/predict/region/trace_index.h"

#include <optional>
#include <random>

#include "tests/policies/predict/backward_script.h"
#include "tests/policies/search/all_save_sets.h"
#include "tests/support/catch.h"
#include "tests/support/random_trace.h"
#include "tests/support/seeds.h"
#include "tests/support/trace_builder.h"

namespace rematch {
namespace {

using std::chrono::nanoseconds;
using testing::all_save_sets;
using testing::Saves;
using testing::TraceBuilder;
using testing::Triple;
using testing::undominated;

constexpr int kMaxOps = 12;  // in larger blocks, trying all save sets takes too long

SaveSetCosts random_costs(const RegionGraph& graph, std::uint32_t seed, Schedule schedule) {
  std::mt19937 dice(seed);
  SaveSetCosts costs;
  costs.schedule = schedule;
  for (std::size_t op = 0; op < graph.ops.size(); ++op) {
    costs.op_times.emplace_back(graph.ops[op].is_view ? dice() % 3 : dice() % 100);
  }
  return costs;
}

// Returns a block of a random trace. It may have views, in-place groups, ops with several outputs,
// shared inputs, and outputs that nothing demands. Returns nullopt if there are too many save sets
// to try.
std::optional<RegionGraph> random_block(std::uint32_t seed) {
  testing::RandomTraceOptions options;
  options.layers = 2;
  options.ops_per_block = 3 + static_cast<int>(seed % 7);
  options.ops_outside_blocks = 1;
  options.collectives = seed % 5 == 0;
  const Trace trace = testing::random_trace(seed, options);
  const TracedScope& scope = trace.scopes[trace.blocks[seed % 2].scope];
  RegionGraph graph = make_region_graph(trace, {scope.first_op, scope.end_op});
  int num_own = 0;
  for (const RegionOp& op : graph.ops) num_own += op.is_view || !op.writes.empty() ? 0 : 1;
  if (num_own > kMaxOps) return std::nullopt;
  return graph;
}

std::vector<Triple> triples_of(const BlockFront& front) {
  std::vector<Triple> triples;
  for (const BlockPoint& point : front.points) triples.push_back(testing::triple_of(point));
  return triples;
}

std::vector<Triple> without_transient(std::vector<Triple> triples) {
  for (Triple& triple : triples) std::get<2>(triple) = 0;
  return undominated(triples);
}

// Checks that for every save set the front has a point that is as good, within the gaps that the
// front states.
void check_gaps(const BlockFront& front, const std::vector<Triple>& all) {
  const std::vector<Triple> triples = triples_of(front);
  for (const Triple& any : all) {
    CHECK(std::get<2>(any) >= front.transient_bound.count);
    Triple allowed = any;
    std::get<1>(allowed) += front.time_gap.count();
    std::get<2>(allowed) += front.transient_gap.count;
    CHECK(std::any_of(triples.begin(), triples.end(),
                      [&](const Triple& point) { return testing::is_no_worse(point, allowed); }));
  }
}

void check_against_all(const RegionGraph& graph, const SaveSetCosts& costs) {
  const std::vector<Triple> all = all_save_sets(graph, costs);
  BlockFrontLimits limits;
  limits.max_tried_ops = kMaxOps;
  const BlockFront tried = find_block_front(graph, costs, limits);
  CHECK(tried.is_exact());
  CHECK(triples_of(tried) == undominated(all));

  limits.max_tried_ops = 0;
  const BlockFront improved = find_block_front(graph, costs, limits);
  CHECK(improved.time_gap.count() == 0);
  CHECK(without_transient(triples_of(improved)) == without_transient(all));
  check_gaps(improved, all);
  limits.max_simulations = 0;
  const BlockFront bounded = find_block_front(graph, costs, limits);
  CHECK(without_transient(triples_of(bounded)) == without_transient(all));
  check_gaps(bounded, all);
  limits.max_labels = 4;
  check_gaps(find_block_front(graph, costs, limits), all);
  limits = {};
  limits.time_slack = nanoseconds(20);
  check_gaps(find_block_front(graph, costs, limits), all);
  limits.max_tried_ops = 0;
  const BlockFront thinned = find_block_front(graph, costs, limits);
  CHECK(thinned.time_gap == nanoseconds(40));
  check_gaps(thinned, all);
  limits = {};
  limits.hull_only = true;
  limits.max_simulations = 0;
  check_gaps(find_block_front(graph, costs, limits), all);
}

// If random blocks had no views, shared inputs and so on, the comparison of their fronts would
// prove little.
TEST_CASE("random blocks have every property that makes the choice of save sets hard") {
  int num_several_outputs = 0;
  int num_views = 0;
  int num_in_place = 0;
  int num_shared_inputs = 0;
  int num_undemanded = 0;
  int most_own = 0;
  for (std::uint32_t seed = 0; seed < testing::num_seeds(1500); ++seed) {
    const std::optional<RegionGraph> graph = random_block(seed);
    if (!graph) continue;
    std::vector<int> num_readers(graph->values.size(), 0);
    int num_own = 0;
    for (std::size_t op = 0; op < graph->ops.size(); ++op) {
      const RegionOp& described = graph->ops[op];
      num_several_outputs += described.outputs.size() > 1 ? 1 : 0;
      num_views += described.is_view ? 1 : 0;
      num_in_place += described.writes.empty() ? 0 : 1;
      num_undemanded += testing::is_demanded(*graph, static_cast<int>(op)) ? 0 : 1;
      for (const RegionUse& read : described.reads) ++num_readers[read.value];
      num_own += described.is_view || !described.writes.empty() ? 0 : 1;
    }
    for (int readers : num_readers) num_shared_inputs += readers > 1 ? 1 : 0;
    most_own = std::max(most_own, num_own);
  }
  for (int number :
       {num_several_outputs, num_views, num_in_place, num_shared_inputs, num_undemanded}) {
    CHECK(number > 20);
  }
  CHECK(most_own == kMaxOps);
}

TEST_CASE("under on_demand, the block front equals the front of all save sets") {
  int num_blocks = 0;
  for (std::uint32_t seed = 0; seed < testing::num_seeds(400); ++seed) {
    CAPTURE(seed);
    const std::optional<RegionGraph> graph = random_block(seed);
    if (!graph) continue;
    ++num_blocks;
    check_against_all(*graph, random_costs(*graph, seed, Schedule::kOnDemand));
  }
  CHECK(num_blocks > 50);
}

TEST_CASE("under whole_region, the block front equals the front of all save sets") {
  for (std::uint32_t seed = 0; seed < testing::num_seeds(1500); ++seed) {
    CAPTURE(seed);
    const std::optional<RegionGraph> graph = random_block(seed);
    if (!graph) continue;
    check_against_all(*graph, random_costs(*graph, seed, Schedule::kWholeRegion));
  }
}

// Solves a knapsack problem as a choice of saved ops: op i takes bytes[i] if it is saved, and
// times[i] if it runs again. Returns the most time that can be avoided by saving at most
// `capacity` bytes.
std::chrono::nanoseconds most_time_kept(const std::vector<std::int64_t>& bytes,
                                        const std::vector<std::int64_t>& times,
                                        std::int64_t capacity) {
  TraceBuilder build("knapsack", "bool");
  const ValueId x = build.outside({1}, "bool", true);
  SaveSetCosts costs;
  costs.schedule = Schedule::kWholeRegion;
  nanoseconds total{};
  for (std::size_t item = 0; item < bytes.size(); ++item) {
    build.call("aten::silu", {x}, {bytes[item]}, {{}, {0}});
    costs.op_times.emplace_back(times[item]);
    total += costs.op_times.back();
  }
  const Trace trace = build.finish();
  const RegionGraph graph = make_region_graph(trace, {0_op, trace.ops.end_id()});
  nanoseconds best{};
  for (const BlockPoint& point : find_block_front(graph, costs).points) {
    if (point.saved.count <= capacity) best = std::max(best, total - point.recompute);
  }
  return best;
}

// The budget is 72 bytes. The ops with 5, 22 and 26 bytes, 53 in total, save 2 + 27 + 28 = 57 ns.
// The ops with 25, 22 and 26 bytes do not fit, because they have 73 in total. In PyTorch's issue
// 197871, the knapsack that uses linear memory saves less time, and exceeds its budget in other
// cases.
TEST_CASE("the best answer within the budget is found, and no answer exceeds the budget") {
  CHECK(most_time_kept({25, 5, 22, 26}, {25, 2, 27, 28}, 72) == nanoseconds(57));
  CHECK(most_time_kept({25, 5, 22, 26}, {25, 2, 27, 28}, 0) == nanoseconds(0));
  CHECK(most_time_kept({25, 5, 22, 26}, {25, 2, 27, 28}, 78) == nanoseconds(82));
}

// Backward demands a (4 bytes) and b (8). The next region holds b anyway.
TEST_CASE("keeping a value that is held anyway costs no bytes") {
  TraceBuilder build("free", "bool");
  const ValueId x = build.outside({1}, "bool", true);
  const ValueId a = build.call("aten::silu", {x}, {4}, {{}, {0}});
  build.call("aten::silu", {a}, {8}, {{}, {0}});
  const Trace trace = build.finish();
  const RegionGraph graph = make_region_graph(trace, {0_op, trace.ops.end_id()});
  SaveSetCosts costs;
  costs.op_times = {nanoseconds(10), nanoseconds(100)};
  CHECK(find_save_sets(graph, costs).sets.size() == 4);  // the sets hold 0, 4, 8 and 12 bytes
  costs.free_storages.resize(graph.storages.size(), false);
  for (std::size_t storage = 0; storage < graph.storages.size(); ++storage) {
    costs.free_storages[storage] = graph.storages[storage].bytes == Bytes{8};
  }
  const std::vector<BlockPoint> points = find_block_front(graph, costs).points;
  REQUIRE(points.size() == 2);
  CHECK(points[0].saves == std::vector<int>{1});
  CHECK(points[0].saved == Bytes{0});
  CHECK(points[0].recompute == nanoseconds(10));
  CHECK(points[1].saved == Bytes{4});
}

// 2^25 + 1 is 2^25 in float32.
TEST_CASE("the time of a short op is not rounded away when it is added to the time of a long op") {
  constexpr std::int64_t kMuch = std::int64_t{1} << 25;
  CHECK(most_time_kept({8, 1}, {kMuch, 1}, 9) == nanoseconds(kMuch + 1));
}

}  // namespace
}  // namespace rematch
