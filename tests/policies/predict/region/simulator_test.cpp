#include "policies/predict/region/simulator.h"

#include <algorithm>
#include <random>
#include <set>

#include "policies/predict/region/order.h"
#include "policies/predict/region/trace_index.h"
#include "tests/policies/predict/backward_script.h"
#include "tests/support/catch.h"
#include "tests/support/random_trace.h"
#include "tests/support/replay_oracle.h"
#include "tests/support/seeds.h"
#include "tests/support/trace_builder.h"

namespace rematch {
namespace {

using testing::backward_op;
using testing::demand;
using testing::release;
using testing::saving;
using testing::TraceBuilder;

std::vector<OpId> ops_of(const RegionSimulation& simulation) {
  std::vector<OpId> ops;
  for (const ExecutedOp& executed : simulation.executed) ops.push_back(executed.op);
  return ops;
}

std::vector<std::int64_t> counts(const std::vector<Bytes>& curve) {
  std::vector<std::int64_t> numbers;
  for (Bytes bytes : curve) numbers.push_back(bytes.count);
  return numbers;
}

// The chain is x (7 bytes) -> a (10) -> b (20) -> c (5) -> loss. Each op after the first saves its
// input. Backward demands c, b, a and x, in this order.
Trace chain() {
  TraceBuilder build("chain", "bool");
  const ValueId origin = build.outside({1}, "bool", true);
  const ValueId x = build.call("aten::gelu", {origin}, {7});
  const ValueId a = build.call("aten::silu", {x}, {10}, {{0}, {}});
  const ValueId b = build.call("aten::silu", {a}, {20}, {{0}, {}});
  const ValueId c = build.call("aten::silu", {b}, {5}, {{0}, {}});
  build.call("aten::silu", {c}, {1}, {{0}, {}});
  Trace trace = build.finish();
  trace.backward = {backward_op(1)};
  std::int64_t other_bytes = 1;
  for (const PackId pack : {3_pack, 2_pack, 1_pack, 0_pack}) {
    trace.backward.push_back(demand(pack, other_bytes));
    trace.backward.push_back(backward_op(3));
    trace.backward.push_back(release(pack));
    other_bytes = 3;
  }
  return trace;
}

// The region has ops 1 to 4 and keeps b (20 bytes). At the start it holds b, and backward holds 1
// byte. When backward demands c, op 1 makes a (30 + 1 bytes) and op 3 makes c (35 + 1 bytes). From
// then on, backward holds 3 bytes, and c, b and a are released one after another.
TEST_CASE("at the first demand, whole_region recomputes everything that is not kept") {
  const Trace trace = chain();
  const RegionType type = saving(trace, 1_op, 5_op, {1});
  const RegionSimulation result = simulate_region(trace, 1_op, 5_op, type, Schedule::kWholeRegion);
  CHECK(result.executed == std::vector<ExecutedOp>{{1_op, 3_pack}, {3_op, 3_pack}});
  CHECK(result.kept == Bytes{20});
  CHECK(result.inputs == Bytes{7});
  CHECK(counts(result.curve) == std::vector<std::int64_t>{21, 31, 36, 38, 33, 13, 3});
  CHECK(result.peak == Bytes{38});
}

// Backward holds 90 bytes at the start, but only 2 bytes when it demands c. This happens on a
// sharded rank, which frees gathered parameters in between.
TEST_CASE("bytes during recompute include the bytes that backward holds at the same time") {
  Trace trace = chain();
  trace.backward[0] = backward_op(90);
  trace.backward[1] = demand(3_pack, 2);
  const RegionType type = saving(trace, 1_op, 5_op, {1});
  const RegionSimulation result = simulate_region(trace, 1_op, 5_op, type, Schedule::kWholeRegion);
  CHECK(counts(result.curve) == std::vector<std::int64_t>{110, 32, 37, 38, 33, 13, 3});
}

// When backward demands c, op 3 makes it from the kept value b: 25 + 1 bytes. Value a is made
// later, when backward demands it.
TEST_CASE("on_demand recomputes only what a demand needs") {
  const Trace trace = chain();
  const RegionType type = saving(trace, 1_op, 5_op, {1});
  const RegionSimulation result = simulate_region(trace, 1_op, 5_op, type, Schedule::kOnDemand);
  CHECK(result.executed == std::vector<ExecutedOp>{{3_op, 3_pack}, {1_op, 1_pack}});
  CHECK(counts(result.curve) == std::vector<std::int64_t>{21, 26, 28, 23, 13, 13, 3});
  CHECK(result.peak == Bytes{28});
}

TEST_CASE("without early stop, whole_region runs a region to its end, and on_demand does not") {
  const Trace trace = chain();
  RegionType type = saving(trace, 1_op, 5_op, {});
  CHECK(ops_of(simulate_region(trace, 1_op, 5_op, type, Schedule::kWholeRegion)) ==
        std::vector<OpId>{1_op, 2_op, 3_op});
  type.early_stop = false;
  CHECK(ops_of(simulate_region(trace, 1_op, 5_op, type, Schedule::kWholeRegion)) ==
        std::vector<OpId>{1_op, 2_op, 3_op, 4_op});
  CHECK(ops_of(simulate_region(trace, 1_op, 5_op, type, Schedule::kOnDemand)) ==
        std::vector<OpId>{1_op, 2_op, 3_op});
}

// The slots of c and b are dropped, so nothing needs b, which is kept. When backward demands a, b
// is released first (20 bytes), and then a is made (10 bytes).
TEST_CASE("a slot that is dropped without a demand releases its value") {
  Trace trace = chain();
  trace.backward = {release(3_pack), release(2_pack), demand(1_pack),
                    backward_op(0),  release(1_pack), release(0_pack)};
  const RegionType type = saving(trace, 1_op, 5_op, {1});
  const RegionSimulation result = simulate_region(trace, 1_op, 5_op, type, Schedule::kOnDemand);
  CHECK(ops_of(result) == std::vector<OpId>{1_op});
  CHECK(counts(result.curve) == std::vector<std::int64_t>{20, 10, 10});
}

// The slot of a is dropped after the demand for c, so op 1, which makes a, never runs.
TEST_CASE("a slot dropped between demands is not recomputed") {
  Trace trace = chain();
  trace.backward = {demand(3_pack), release(3_pack), release(1_pack),
                    demand(2_pack), release(2_pack), release(0_pack)};
  const RegionType type = saving(trace, 1_op, 5_op, {1});
  CHECK(ops_of(simulate_region(trace, 1_op, 5_op, type, Schedule::kOnDemand)) ==
        std::vector<OpId>{3_op});
}

// Once c (5 bytes) is made, only the slot of b needs b (20 bytes). Dropping this slot releases b.
TEST_CASE("a slot dropped between demands releases the values kept for it") {
  Trace trace = chain();
  trace.backward = {demand(3_pack), backward_op(0), release(3_pack), release(2_pack),
                    backward_op(0), demand(1_pack), release(1_pack), release(0_pack)};
  const RegionType type = saving(trace, 1_op, 5_op, {1});
  const RegionSimulation result = simulate_region(trace, 1_op, 5_op, type, Schedule::kOnDemand);
  CHECK(counts(result.curve) == std::vector<std::int64_t>{20, 25, 25, 0, 10});
}

// Op 1 makes `early` from y, before op 2 overwrites y. Backward demands the new y first. Recompute
// must still make `early` before it overwrites y.
TEST_CASE("a write waits for planned readers of the overwritten value") {
  TraceBuilder build("writes", "bool");
  const ValueId x = build.outside({1}, "bool", true);
  const ValueId y = build.call("aten::gelu", {x}, {10});    // 0
  const ValueId early = build.call("aten::sum", {y}, {3});  // op 1 reads y at version 0
  build.in_place("aten::add_.Tensor", {y, x});              // 2
  build.call("aten::silu", {early}, {1}, {{0}, {}});        // pack 0: `early`
  build.call("aten::silu", {y}, {1}, {{0}, {}});            // pack 1: y
  Trace trace = build.finish();
  trace.backward = {demand(1_pack), backward_op(0), release(1_pack), demand(0_pack),
                    release(0_pack)};
  const RegionType type = saving(trace, 0_op, 5_op, {});
  // Recompute allocates y (10 bytes) and then `early` (3 bytes). Op 2 overwrites y and allocates
  // nothing.
  const RegionSimulation result = simulate_region(trace, 0_op, 5_op, type, Schedule::kOnDemand);
  CHECK(ops_of(result) == std::vector<OpId>{0_op, 1_op, 2_op});
  CHECK(counts(result.curve) == std::vector<std::int64_t>{0, 10, 13, 13, 13});
}

TEST_CASE("a demanded op waits for readers of the value that it overwrites") {
  TraceBuilder build("side write", "bool");
  const ValueId x = build.outside({1}, "bool", true);
  const ValueId y = build.call("aten::gelu", {x}, {10});         // 0
  const ValueId early = build.call("aten::sum", {y}, {3});       // op 1 reads y at version 0
  const ValueId late = build.call("my::write_to_it", {y}, {5});  // op 2 also writes y
  build.call("aten::silu", {early}, {1}, {{0}, {}});             // pack 0: `early`
  build.call("aten::silu", {late}, {1}, {{0}, {}});              // pack 1: `late`
  Trace trace = build.finish();
  trace.ops[2_op].writes = {trace.values[y].storage};
  trace.backward = {demand(1_pack), backward_op(0), release(1_pack), demand(0_pack),
                    release(0_pack)};
  const RegionType type = saving(trace, 0_op, 5_op, {});
  // Recompute allocates y (10 bytes), then `early` (3 bytes) and `late` (5 bytes). Then y is
  // released.
  const RegionSimulation result = simulate_region(trace, 0_op, 5_op, type, Schedule::kOnDemand);
  CHECK(ops_of(result) == std::vector<OpId>{0_op, 1_op, 2_op});
  CHECK(counts(result.curve) == std::vector<std::int64_t>{0, 10, 13, 18, 8});
}

TEST_CASE("demanding an outside tensor starts no recompute") {
  Trace trace = chain();
  trace.backward = {demand(0_pack), backward_op(2), release(0_pack)};
  const RegionType type = saving(trace, 1_op, 5_op, {1});
  const RegionSimulation result = simulate_region(trace, 1_op, 5_op, type, Schedule::kWholeRegion);
  CHECK(result.executed.empty());
  CHECK(result.peak == Bytes{22});
}

TEST_CASE("a write to an outside tensor is not repeated, and the written value is held") {
  TraceBuilder build("side_effect", "bool");
  const ValueId counter = build.outside({1}, "bool");
  const ValueId x = build.outside({1}, "bool", true);
  const ValueId y = build.call("aten::gelu", {x}, {10});  // 0
  build.in_place("aten::add_.Tensor", {counter, y});      // 1
  build.call("aten::silu", {y}, {1}, {{0}, {}});          // 2
  Trace trace = build.finish();
  trace.backward = {demand(0_pack), release(0_pack)};
  const RegionType type = saving(trace, 0_op, 3_op, {});
  for (Schedule schedule : {Schedule::kWholeRegion, Schedule::kOnDemand}) {
    CHECK(ops_of(simulate_region(trace, 0_op, 3_op, type, schedule)) == std::vector<OpId>{0_op});
  }
}

// Foreign code filled the tensor, so no recorded op can restore its content.
TEST_CASE("an empty tensor that is read before any write is a constant until the region ends") {
  TraceBuilder build("filled", "bool");
  const ValueId x = build.outside({1}, "bool", true);
  const ValueId filled = build.call("aten::empty.memory_format", {}, {10});  // 0
  build.call("aten::mul.Tensor", {x, filled}, {1}, {{1}, {}});               // 1
  Trace trace = build.finish();
  trace.backward = {demand(0_pack), backward_op(0), release(0_pack)};
  const RegionType type = saving(trace, 0_op, 2_op, {});
  for (Schedule schedule : {Schedule::kWholeRegion, Schedule::kOnDemand}) {
    const RegionSimulation result = simulate_region(trace, 0_op, 2_op, type, schedule);
    CHECK(result.kept == Bytes{10});
    CHECK(result.executed.empty());
    CHECK(counts(result.curve) == std::vector<std::int64_t>{10, 10});
  }
}

// When backward demands y, mul reads the constant for the last time. The constant (10 bytes) stays
// alive beside y (10 bytes).
TEST_CASE("a constant is held beyond its last use") {
  TraceBuilder build("filled", "bool");
  const ValueId x = build.outside({1}, "bool", true);
  const ValueId filled = build.call("aten::empty.memory_format", {}, {10});  // 0
  const ValueId y = build.call("aten::mul.Tensor", {x, filled}, {10});       // 1
  build.call("aten::silu", {y}, {1}, {{0}, {}});                             // 2
  Trace trace = build.finish();
  trace.backward = {demand(0_pack), backward_op(0), release(0_pack)};
  const RegionType type = saving(trace, 0_op, 3_op, {});
  const RegionSimulation result = simulate_region(trace, 0_op, 3_op, type, Schedule::kOnDemand);
  CHECK(counts(result.curve) == std::vector<std::int64_t>{10, 20, 20});
}

// The first output of attention (10 bytes) is kept. The second (4 bytes) was overwritten, so it is
// not kept, and attention runs again. While it runs, both new outputs and the kept output are
// alive: 24 bytes.
TEST_CASE("an op with one kept output runs again if its other output is needed") {
  TraceBuilder build("partly_kept", "bool");
  const ValueId x = build.outside({1}, "bool", true);
  const auto outputs = build.op("rematch::attention", {x}, {{10}, {4}},
                                {{}, {0}});                // pack 0: the second output of op 0
  build.in_place("aten::add_.Scalar", {outputs[1]});       // 1
  build.call("aten::silu", {outputs[1]}, {1}, {{0}, {}});  // pack 1: the input of op 2
  Trace trace = build.finish();
  trace.backward = {demand(1_pack), backward_op(0), release(1_pack), demand(0_pack),
                    release(0_pack)};
  const RegionType type = saving(trace, 0_op, 3_op, {0});
  const RegionSimulation result = simulate_region(trace, 0_op, 3_op, type, Schedule::kOnDemand);
  CHECK(ops_of(result) == std::vector<OpId>{0_op, 1_op});
  CHECK(counts(result.curve) == std::vector<std::int64_t>{10, 24, 14, 14});
}

// Autograd and the engine both reject a demand for y, so backward demands only z.
TEST_CASE("no recompute is planned for a tensor that was overwritten after saving") {
  TraceBuilder build("overwritten", "bool");
  const ValueId x = build.outside({1}, "bool", true);
  const ValueId y = build.call("aten::gelu", {x}, {10});  // 0
  build.call("aten::silu", {y}, {1}, {{0}, {}});          // pack 0: y at version 0
  build.in_place("aten::add_.Tensor", {y, x});            // 2
  const ValueId z = build.call("aten::gelu", {x}, {5});   // 3
  build.call("aten::silu", {z}, {1}, {{0}, {}});          // pack 1: z
  Trace trace = build.finish();
  trace.backward = {demand(1_pack), release(1_pack), release(0_pack)};
  const RegionType type = saving(trace, 0_op, 5_op, {});
  CHECK(ops_of(simulate_region(trace, 0_op, 5_op, type, Schedule::kOnDemand)) ==
        std::vector<OpId>{3_op});
}

struct RandomRegion {
  Trace trace;
  OpRange range;
  RegionType type;
};

// Returns one to three blocks of a random model, with random saved ops. With every second seed, the
// bytes of backward also vary at random.
RandomRegion random_region(std::uint32_t seed) {
  std::mt19937 dice(seed);
  const auto below = [&dice](std::size_t limit) { return dice() % limit; };
  RandomRegion made;
  testing::RandomTraceOptions options;
  options.layers = 3;
  options.ops_per_block = 4 + static_cast<int>(below(14));
  options.collectives = seed % 3 == 0;
  made.trace = testing::random_trace(seed, options);
  for (BackwardEvent& event : made.trace.backward) {
    if (seed % 2 == 0) break;
    if (event.kind == BackwardEvent::Kind::kOp || event.kind == BackwardEvent::Kind::kDemand)
      event.other_bytes = {static_cast<std::int64_t>(below(6) * below(6) * 2000)};
  }
  const auto scope = [&](std::size_t block) {
    return made.trace.scopes[made.trace.blocks[block].scope];
  };
  const std::size_t first = below(3);
  const std::size_t last = first + below(3 - first);
  made.range = {scope(first).first_op, scope(last).end_op};
  std::vector<int> saved;
  const std::size_t percent = below(4) * 25;
  for (const OpId op : made.range.ids()) {
    if (below(100) < percent) saved.push_back(op - made.range.first);
  }
  made.type = saving(made.trace, made.range.first, made.range.end, saved);
  made.type.early_stop = below(2) == 0;
  return made;
}

void check_against_oracle(const RandomRegion& random, const RegionType& type, Schedule schedule) {
  const auto simulated =
      simulate_region(random.trace, random.range.first, random.range.end, type, schedule);
  const auto expected = testing::replay_oracle(random.trace, random.range, type, schedule);
  CHECK(ops_of(simulated) == expected.executed);
  CHECK(counts(simulated.curve) == counts(expected.curve));
  CHECK(simulated.peak == expected.peak);
}

TEST_CASE("the simulator agrees with an oracle that looks up every value's lifetime",
          "[property]") {
  for (std::uint32_t seed = 0; seed < testing::num_seeds(300); ++seed) {
    CAPTURE(seed);
    RandomRegion random = random_region(seed);
    check_against_oracle(random, random.type, Schedule::kWholeRegion);
    check_against_oracle(random, random.type, Schedule::kOnDemand);
    RegionType whole = random.type;
    whole.whole_on_demand = true;
    check_against_oracle(random, whole, Schedule::kOnDemand);
    choose_order(random.trace, random.range.first, random.range.end, random.type);
    check_against_oracle(random, random.type, Schedule::kOnDemand);
    random.type.by_demand = true;
    check_against_oracle(random, random.type, Schedule::kWholeRegion);
  }
}

TEST_CASE("choose_order returns the simulation of the order that it chose", "[property]") {
  int num_sunk = 0;
  for (std::uint32_t seed = 0; seed < testing::num_seeds(300); ++seed) {
    CAPTURE(seed);
    RandomRegion random = random_region(seed);
    const RegionGraph graph = make_region_graph(random.trace, random.range);
    const RegionSimulation chosen = choose_order(graph, random.type);
    const RegionSimulation again = simulate_region(graph, random.type, Schedule::kOnDemand);
    CHECK(ops_of(chosen) == ops_of(again));
    CHECK(counts(chosen.curve) == counts(again.curve));
    CHECK(chosen.boundary_peak == again.boundary_peak);
    CHECK(chosen.demanded_peak == again.demanded_peak);
    CHECK(chosen.timeline.steps.size() == again.timeline.steps.size());
    CHECK(chosen.timeline.events.size() == again.timeline.events.size());
    num_sunk += random.type.demand_steps.empty() ? 0 : 1;
  }
  CHECK(num_sunk > 0);
}

TEST_CASE("a simulation ends early if and only if its peak reaches the limit", "[property]") {
  for (std::uint32_t seed = 0; seed < testing::num_seeds(300); ++seed) {
    CAPTURE(seed);
    const RandomRegion random = random_region(seed);
    const RegionGraph graph = make_region_graph(random.trace, random.range);
    if (graph.events.empty()) continue;
    for (const auto extent :
         {ReplayExtent::kPrefix, ReplayExtent::kWholeClosure, ReplayExtent::kLazyClosure}) {
      const RegionSimulation whole = play_region(graph, random.type, extent);
      const std::int64_t peak = whole.peak.count;
      for (const std::int64_t limit : {std::int64_t{0}, peak / 2, peak, peak + 1}) {
        CAPTURE(limit, peak);
        const RegionSimulation limited =
            play_region(graph, random.type, extent, {}, nullptr, Bytes{limit});
        if (peak < limit) {
          CHECK(counts(limited.curve) == counts(whole.curve));
          CHECK(ops_of(limited) == ops_of(whole));
        } else {
          // The simulation ends at the first value of the curve that reaches the limit.
          CHECK(limited.peak.count >= limit);
          const std::vector<std::int64_t> curve = counts(whole.curve);
          const auto reaching = std::find_if(curve.begin(), curve.end(),
                                             [&](std::int64_t bytes) { return bytes >= limit; });
          CHECK(counts(limited.curve) == std::vector(curve.begin(), reaching + 1));
        }
      }
    }
  }
}

TEST_CASE("on_demand never executes more ops and never has a higher peak than whole_region",
          "[property]") {
  int num_sunk = 0;
  int num_whole = 0;
  int num_lower = 0;
  for (std::uint32_t seed = 0; seed < testing::num_seeds(1000); ++seed) {
    CAPTURE(seed);
    RandomRegion random = random_region(seed);
    const auto [first, end] = random.range;
    choose_order(random.trace, first, end, random.type);
    const auto demanded =
        simulate_region(random.trace, first, end, random.type, Schedule::kOnDemand);
    const auto whole =
        simulate_region(random.trace, first, end, random.type, Schedule::kWholeRegion);
    std::set<OpId> distinct;
    for (OpId op : ops_of(demanded)) CHECK(distinct.insert(op).second);
    const std::vector<OpId> all = ops_of(whole);
    for (OpId op : distinct) CHECK(std::find(all.begin(), all.end(), op) != all.end());
    CHECK(demanded.peak <= whole.peak);
    CHECK(demanded.kept == whole.kept);
    num_sunk += random.type.demand_steps.empty() ? 0 : 1;
    num_whole += random.type.whole_on_demand ? 1 : 0;
    num_lower += demanded.peak < whole.peak ? 1 : 0;
  }
  // Each possible result of choose_order() occurs for some seeds.
  CHECK(num_sunk > 5);
  CHECK(num_whole > 1);
  CHECK(num_lower > 100);
}

}  // namespace
}  // namespace rematch
