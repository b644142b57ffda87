// Tests the reader of joint graphs.
#include "policies/joint/joint_graph.h"

#include "policies/base/json.h"
#include "tests/support/catch.h"

namespace rematch {
namespace {

// Node 0 is an input, node 1 an op that reads it, node 2 a view of the result.
Json three_nodes() {
  return Json::parse(R"({"inputs": [[], [0], [1]], "results": [[], [1], [2]], "root": [0, 1, 1],
    "op": [0, 1, 2], "bytes": [4, 8, 0], "unread_bytes": [0, 2, 0], "temporary_bytes": [0, 16, 0],
    "time_ns": [0, 70, 0], "saving_ns": [0, 3, 0], "layer": [null, 5, null], "placeholders": [0],
    "calls": [1, 2], "ops": [1, 2], "tensors": [0, 1, 2], "views": [2], "elementwise": [1],
    "reductions": [], "forward": [1, 2], "kept": [1], "overwriting": [], "forward_outputs": [2],
    "dropped_outputs": [], "freed_outputs": [], "activation_inputs": [], "copied_inputs": [],
    "tangents": [], "backward_seeds": [], "backward_outputs": [], "parameter_gradients": [],
    "frees_tangents": true, "bytes_per_second": 1e10})");
}

TEST_CASE("a joint graph is read from its lists") {
  const Json json = three_nodes();
  const JointGraph graph = joint_graph_from_json(JsonField(json));
  REQUIRE(graph.nodes.size() == 3);
  const JointNode& op = graph.nodes[NodeId(1)];
  CHECK(op.is_op);
  CHECK(op.is_kept);
  CHECK_FALSE(op.is_view);
  CHECK(op.bytes == Bytes{8});
  CHECK(op.unread == Bytes{2});
  CHECK(op.temporary == Bytes{16});
  CHECK(op.time.count() == 70);
  CHECK(op.saving.count() == 3);
  CHECK(*op.layer == 5);
  CHECK_FALSE(graph.nodes[NodeId(0)].layer.has_value());
  CHECK(graph.users[NodeId(1)] == NodeIds{NodeId(2)});
  CHECK(graph.made_roots[NodeId(2)] == NodeIds{NodeId(1)});
  CHECK(graph.read_roots[NodeId(2)] == NodeIds{NodeId(1)});
}

TEST_CASE("lists of other lengths and unknown nodes are rejected") {
  Json shorter = three_nodes();
  shorter["bytes"].erase(2);
  CHECK_THROWS_AS(joint_graph_from_json(JsonField(shorter)), FormatError);
  Json unknown = three_nodes();
  unknown["inputs"][1][0] = 3;
  CHECK_THROWS_AS(joint_graph_from_json(JsonField(unknown)), FormatError);
  Json missing = three_nodes();
  missing.erase("root");
  CHECK_THROWS_AS(joint_graph_from_json(JsonField(missing)), FormatError);
}

}  // namespace
}  // namespace rematch
