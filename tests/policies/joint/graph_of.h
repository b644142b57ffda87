// Builds small joint graphs for tests, node by node.
#pragma once

#include <initializer_list>
#include <utility>

#include "policies/joint/joint_graph.h"

namespace rematch::testing {

class GraphBuilder {
 public:
  // Adds an input of the step, such as a parameter.
  NodeId input(std::int64_t bytes = 0) { return add({}, {.is_placeholder = true}, bytes); }

  // Adds an incoming gradient.
  NodeId tangent(std::int64_t bytes) {
    graph_.tangents.push_back(input(bytes));
    return graph_.tangents.back();
  }

  // Adds an op of forward with one result.
  NodeId forward(NodeIds inputs, std::int64_t bytes, JointNode flags = {}) {
    flags.is_call = flags.is_op = flags.is_forward = true;
    return add(std::move(inputs), std::move(flags), bytes);
  }

  // Adds an op of backward with one result.
  NodeId backward(NodeIds inputs, std::int64_t bytes, JointNode flags = {}) {
    flags.is_call = flags.is_op = true;
    graph_.backward_seeds.push_back(add(std::move(inputs), std::move(flags), bytes));
    return graph_.backward_seeds.back();
  }

  JointGraph& graph() { return graph_; }

  // Returns the graph. `outputs` are those of forward, `gradients` those of backward.
  JointGraph made(NodeIds outputs, NodeIds gradients) {
    graph_.forward_outputs = std::move(outputs);
    graph_.backward_outputs = std::move(gradients);
    graph_.frees_tangents = true;
    complete(graph_);
    return graph_;
  }

 private:
  NodeId add(NodeIds inputs, JointNode node, std::int64_t bytes) {
    const NodeId id = graph_.nodes.end_id();
    node.inputs = std::move(inputs);
    node.root = node.op = id;
    if (node.is_view && !node.inputs.empty()) node.root = graph_.nodes[node.inputs.front()].root;
    if (node.is_op) node.results = {id};
    node.is_tensor = true;
    node.bytes = {node.root == id ? bytes : 0};
    graph_.nodes.push_back(std::move(node));
    return id;
  }

  JointGraph graph_;
};

}  // namespace rematch::testing
