// Tests the order of a compiled step's nodes on small graphs. tests/harness/python compares the
// schedules of whole models with a slower implementation.
#include "policies/joint/graph_schedule.h"

#include "tests/policies/joint/graph_of.h"
#include "tests/support/catch.h"

namespace rematch {
namespace {

// Layer 0 computes a and b from the input, and layer 1 computes c from b. Backward reads c, then b,
// then a.
struct TwoLayers {
  TwoLayers() {
    testing::GraphBuilder builder;
    x = builder.input(8);
    a = builder.forward({x}, 8, {.layer = 0});
    b = builder.forward({x}, 8, {.layer = 0});
    c = builder.forward({b}, 8, {.layer = 1});
    const NodeId tangent = builder.tangent(8);
    gradient_c = builder.backward({tangent, c}, 8);
    gradient_b = builder.backward({gradient_c, b}, 8);
    gradient_a = builder.backward({gradient_b, a}, 8);
    graph = builder.made({c}, {gradient_a});
  }

  NodeId x, a, b, c, gradient_c, gradient_b, gradient_a;
  JointGraph graph;
};

TEST_CASE("a saved value is not recomputed, and an unread one is not saved") {
  const TwoLayers two;
  const GraphSchedule schedule =
      schedule_of(two.graph, {two.x, two.a, two.b, two.c}, Fusion::kNone);
  CHECK(schedule.saved == NodeIds{two.a, two.b, two.c});
  CHECK(schedule.recomputed.empty());
  CHECK(schedule.forward == NodeIds{two.a, two.b, two.c});
  CHECK(schedule.by_first_use == NodeIds{two.gradient_c, two.gradient_b, two.gradient_a});
  CHECK_FALSE(schedule.by_layer);
}

TEST_CASE("an op is recomputed at its first use, or with its layer") {
  const TwoLayers two;
  const GraphSchedule schedule = schedule_of(two.graph, {two.x}, Fusion::kNone);
  CHECK(schedule.saved == NodeIds{two.x});
  CHECK(schedule.recomputed == NodeIds{two.b, two.c, two.a});
  CHECK(schedule.forward == NodeIds{two.b, two.c});  // forward does not need a
  CHECK(schedule.by_first_use ==
        NodeIds{two.b, two.c, two.gradient_c, two.gradient_b, two.a, two.gradient_a});
  REQUIRE(schedule.by_layer);
  CHECK(*schedule.by_layer ==
        NodeIds{two.a, two.b, two.c, two.gradient_c, two.gradient_b, two.gradient_a});
}

// Both `first` and `second` read `shared`. `calls` other ops run between them.
NodeIds order_with_calls_between(int calls) {
  testing::GraphBuilder builder;
  const NodeId shared = builder.tangent(8);
  const NodeId first = builder.backward({shared}, 8, {.is_elementwise = true});
  NodeId last = shared;
  for (int count = 0; count < calls; ++count) last = builder.backward({last}, 8);
  const NodeId second = builder.backward({shared}, 8, {.is_elementwise = true});
  const JointGraph graph = builder.made({}, {first, last, second});
  return schedule_of(graph, {}, Fusion::kElementwise).by_first_use;
}

TEST_CASE("an elementwise op moves to a near one that reads the same value") {
  CHECK(order_with_calls_between(3) ==
        NodeIds{NodeId(1), NodeId(5), NodeId(2), NodeId(3), NodeId(4)});
  CHECK(order_with_calls_between(4) ==
        NodeIds{NodeId(1), NodeId(2), NodeId(3), NodeId(4), NodeId(5), NodeId(6)});
}

}  // namespace
}  // namespace rematch
