// Tests predicted peaks of small compiled graphs. tests/harness/python compares the peaks of whole
// models with measured ones.
#include "policies/joint/graph_peak.h"

#include "policies/joint/graph_option.h"
#include "tests/policies/joint/graph_of.h"
#include "tests/support/catch.h"

namespace rematch {
namespace {

// x (8 bytes, a parameter) -> a (8) -> b (4) -> loss (1). Backward reads a and b, and returns a
// gradient of 8 bytes.
struct Row {
  explicit Row(JointNode flags_of_b = {}) {
    testing::GraphBuilder builder;
    x = builder.input(8);
    a = builder.forward({x}, 8, {.time = std::chrono::nanoseconds(30)});
    b = builder.forward({a}, 4, flags_of_b);
    loss = builder.forward({b}, 1, {.is_reduction = true});
    const NodeId tangent = builder.tangent(1);
    gradient_b = builder.backward({tangent, b}, 4, {.is_elementwise = true});
    gradient_x = builder.backward({gradient_b, a}, 8, {.temporary = {2}});
    graph = builder.made({loss}, {gradient_x});
    graph.parameter_gradients = {gradient_x};
  }

  NodeId x, a, b, loss, gradient_b, gradient_x;
  JointGraph graph;
};

// Forward ends with a, b and loss: 8 + 4 + 1. Backward begins with a, b, the incoming gradient and
// loss: 14. It adds 4 bytes, then frees b and the incoming gradient: 13. Then it needs 8 and 2
// more.
TEST_CASE("without fusion, each value counts from its op to its last use") {
  const Row row;
  const GraphOption option = option_of(row.graph, {row.a, row.b}, Fusion::kNone);
  CHECK(option.peaks.forward == Bytes{13});
  CHECK(option.peaks.held == Bytes{13});
  CHECK(option.peaks.backward == Bytes{23});
  CHECK(option.peaks.returned == Bytes{1});
  CHECK(option.peaks.outside == Bytes{1});
  CHECK(option.peaks.gradients == Bytes{8});
  CHECK(option.added.count() == 0);
  CHECK(option.num_recomputed == 0);
}

// Forward frees a when b exists. Backward begins with the incoming gradient and loss, and
// recomputes a and b: 2 + 8 + 4. It adds 4 bytes, and frees b and the gradient: 13. Then 8 and 2.
TEST_CASE("recomputed values are allocated in backward") {
  const Row row;
  const GraphOption option = option_of(row.graph, {row.x}, Fusion::kNone);
  CHECK(option.peaks.forward == Bytes{12});
  CHECK(option.peaks.held == Bytes{1});
  CHECK(option.peaks.backward == Bytes{23});
  CHECK(option.added.count() == 30);
  CHECK(option.num_recomputed == 2);
}

TEST_CASE("before torch 2.13, incoming gradients live to the end of backward") {
  Row row;
  row.graph.frees_tangents = false;
  CHECK(option_of(row.graph, {row.a, row.b}, Fusion::kNone).peaks.backward == Bytes{24});
}

// b is computed inside of the kernels that read it, so it takes no memory. The kernel of gradient_b
// then reads a. Of equal sizes, a result may take the place of a value that dies.
TEST_CASE("with fusion, values inside of kernels take no memory") {
  const Row row({.is_elementwise = true});
  const GraphOption option = option_of(row.graph, {row.a}, Fusion::kElementwise);
  CHECK(option.peaks.forward == Bytes{9});
  CHECK(option.peaks.backward == Bytes{1 + 1 + 8 + 4 + 8 + 2 - 1});
}

TEST_CASE("a kernel overwrites an input that dies") {
  testing::GraphBuilder builder;
  const NodeId x = builder.input(8);
  const NodeId a = builder.forward({x}, 8);
  const NodeId tangent = builder.tangent(1);
  const NodeId gradient =
      builder.backward({tangent, a}, 8, {.is_elementwise = true, .can_overwrite = true});
  const JointGraph graph = builder.made({}, {gradient});
  CHECK(option_of(graph, {a}, Fusion::kElementwise).peaks.backward == Bytes{9});
  CHECK(option_of(graph, {a}, Fusion::kNone).peaks.backward == Bytes{17});
}

TEST_CASE("copies of saved inputs count") {
  Row row;
  row.graph.copied_inputs = {row.x};
  row.graph.nodes[row.gradient_x].inputs.push_back(row.x);
  complete(row.graph);
  const Bytes without = option_of(row.graph, {row.x, row.a, row.b}, Fusion::kNone).peaks.held;
  CHECK(option_of(row.graph, {row.x, row.a, row.b}, Fusion::kElementwise).peaks.held ==
        without + Bytes{8});
}

}  // namespace
}  // namespace rematch
