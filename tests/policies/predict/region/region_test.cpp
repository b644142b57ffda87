#include "policies/predict/region/region.h"

#include "policies/predict/region/trace_index.h"
#include "tests/support/catch.h"
#include "tests/support/ids.h"
#include "tests/support/toy_trace.h"
#include "tests/support/trace_builder.h"

namespace rematch {
namespace {

using testing::TraceBuilder;

TEST_CASE("a plan's regions are found in the trace even if a scope opens several times") {
  TraceBuilder build("looped");
  ValueId x = build.outside({2, 2}, "float32", true);
  for (int pass = 0; pass < 2; ++pass) {
    const auto scope = build.scope("blocks", 0);
    x = build.call("aten::silu", {x}, {2, 2}, {{0}, {}});
  }
  const Trace trace = build.finish();
  Plan plan;
  plan.regions = {{"blocks.0", "blocks.0", 0, {0}}, {"blocks.0", "blocks.0", 0, {0}}};
  CHECK(region_ranges(trace, plan) == std::vector<OpRange>{{0_op, 1_op}, {1_op, 2_op}});
  plan.regions.push_back(plan.regions.front());
  CHECK_THROWS_WITH(region_ranges(trace, plan),
                    Catch::Contains("blocks.0") && Catch::Contains("another model"));
}

// Layers 0 and 1 run twice. In the first pass, both layers are one region. In the second pass, each
// layer is a region.
TEST_CASE("a scope that opens inside another region does not start its own region") {
  TraceBuilder build("looped");
  ValueId x = build.outside({2, 2}, "float32", true);
  for (int run = 0; run < 4; ++run) {
    const auto scope = build.scope("blocks", run % 2);
    x = build.call("aten::silu", {x}, {2, 2}, {{0}, {}});
  }
  Plan plan;
  plan.regions = {{"blocks.0", "blocks.1", 0, {0, 1}},
                  {"blocks.0", "blocks.0", 0, {0}},
                  {"blocks.1", "blocks.1", 0, {1}}};
  CHECK(region_ranges(build.finish(), plan) ==
        std::vector<OpRange>{{0_op, 2_op}, {2_op, 3_op}, {3_op, 4_op}});
}

// Each of the four ops is a region.
TEST_CASE("a tensor packed between two regions belongs to the region whose op saved it") {
  TraceBuilder build("edges");
  const ValueId x = build.outside({2, 2}, "float32", true);
  ValueId y = build.call("aten::exp", {x}, {2, 2}, {{}, {0}});       // pack 0: the output of exp
  y = build.call("aten::mul.Tensor", {y, x}, {2, 2}, {{1, 0}, {}});  // packs 1, 2: inputs of mul
  // pack 3: an input of attention; packs 4 and 5: the outputs of attention
  y = build.op("rematch::attention", {y, y, y}, {{2, 2}, {2}}, {{0}, {0, 1}})[0];
  y = build.call("aten::mul.Tensor", {y, x}, {2, 2}, {{1, 0}, {}});  // packs 6, 7: inputs of mul
  const Trace trace = build.finish();
  CHECK(packs_of(trace, {0_op, 1_op}) == std::vector<PackId>{0_pack});
  CHECK(packs_of(trace, {1_op, 2_op}) == std::vector<PackId>{1_pack, 2_pack});
  CHECK(packs_of(trace, {2_op, 3_op}) == std::vector<PackId>{3_pack, 4_pack, 5_pack});
  CHECK(packs_of(trace, {3_op, 4_op}) == std::vector<PackId>{6_pack, 7_pack});
  CHECK(packs_of(trace, {0_op, 4_op}) ==
        std::vector<PackId>{0_pack, 1_pack, 2_pack, 3_pack, 4_pack, 5_pack, 6_pack, 7_pack});
}

// The first region runs exp and relu_, and the second region runs square. relu_ overwrites the
// result of exp.
TEST_CASE("a pack after an in-place write belongs to the op that saved the tensor") {
  TraceBuilder build("edges");
  const ValueId x = build.outside({2, 2}, "float32", true);
  const ValueId y = build.call("aten::exp", {x}, {2, 2});
  build.in_place("aten::relu_", {y});
  build.call("aten::square", {y}, {2, 2});
  Trace trace = build.finish();
  trace.packs.push_back({.value = y, .version = 1, .at_op = 2_op});  // saved as the result of relu_
  trace.packs.push_back({.value = y, .version = 1, .at_op = 2_op});  // saved as the input of square
  CHECK(packs_of(trace, {0_op, 2_op}) == std::vector<PackId>{0_pack});
  CHECK(packs_of(trace, {2_op, 3_op}) == std::vector<PackId>{1_pack});

  trace.ops[1_op].name = "aten::mul_.Scalar";  // mul_ saves nothing, so square saved both packs
  CHECK(packs_of(trace, {0_op, 2_op}).empty());
  CHECK(packs_of(trace, {2_op, 3_op}) == std::vector<PackId>{0_pack, 1_pack});
}

TEST_CASE("with early stop, recompute ends before the last op that packs a tensor") {
  const Trace trace = testing::toy_llama({.layers = 1});
  const TracedScope& block = trace.scopes[trace.blocks[0].scope];
  const RegionGraph graph = make_region_graph(trace, {block.first_op, block.end_op});
  // The block ends with the ops mul, t, mm and add. The last packs are the inputs of mm.
  CHECK(graph.stop == static_cast<int>(graph.ops.size()) - 2);
  CHECK(trace.ops[block.first_op + graph.stop].name == "aten::mm");
}

TEST_CASE("equal layers share one type, and layers of other sizes have another type") {
  const Trace trace = testing::toy_llama({.layers = 3});
  const Trace wider = testing::toy_llama({.layers = 3, .ffn = 48});
  const auto graph = [](const Trace& of, int layer) {
    const TracedScope& block = of.scopes[of.blocks[layer].scope];
    return make_region_graph(of, {block.first_op, block.end_op});
  };
  CHECK(same_behaviour(graph(trace, 0), graph(trace, 1)));
  CHECK(same_behaviour(graph(trace, 1), graph(trace, 2)));
  CHECK_FALSE(same_behaviour(graph(trace, 1), graph(wider, 1)));
  RegionGraph later = graph(trace, 1);
  later.events.back().other_bytes += Bytes{1};
  CHECK_FALSE(same_behaviour(later, graph(trace, 1)));
}

}  // namespace
}  // namespace rematch
