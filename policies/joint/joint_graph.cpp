#include "policies/joint/joint_graph.h"

#include <algorithm>
#include <string_view>

#include "policies/base/json.h"

namespace rematch {
namespace {

// Returns the ids without duplicates. Keeps the order of first occurrence.
NodeIds without_duplicates(const NodeIds& ids) {
  NodeIds found;
  for (const NodeId id : ids) {
    if (std::find(found.begin(), found.end(), id) == found.end()) found.push_back(id);
  }
  return found;
}

NodeId node_id_from_json(const JsonField& field, std::size_t num_nodes) {
  return NodeId(field.integer32(0, static_cast<std::int32_t>(num_nodes) - 1));
}

class Reader {
 public:
  Reader(const JsonField& field, std::size_t num_nodes) : field_(field), num_nodes_(num_nodes) {}

  NodeId id(const JsonField& field) const { return node_id_from_json(field, num_nodes_); }
  NodeIds ids(const JsonField& field) const { return node_ids_from_json(field, num_nodes_); }
  NodeIds ids(std::string_view key) const { return ids(field_.at(key)); }

  // Calls `set` with each node and its entry in the list `key`, which has one entry per node.
  template <class Set>
  void each(JointGraph& graph, std::string_view key, const Set& set) const {
    const JsonField list = field_.at(key);
    if (list.size() != graph.nodes.size()) list.fail("must have one entry for each node");
    std::size_t index = 0;
    for (const JsonField& element : list.elements()) set(graph.nodes[NodeId(index++)], element);
  }

  // Sets `member` of the nodes in the list `key`.
  void mark(JointGraph& graph, std::string_view key, bool JointNode::*member) const {
    for (const NodeId id : ids(key)) graph.nodes[id].*member = true;
  }

 private:
  const JsonField& field_;
  std::size_t num_nodes_;
};

void read_nodes(const Reader& reader, JointGraph& graph) {
  const auto ids_of = [&](NodeIds JointNode::*member) {
    return [&reader, member](JointNode& node, const JsonField& json) {
      node.*member = reader.ids(json);
    };
  };
  const auto id_of = [&](NodeId JointNode::*member) {
    return [&reader, member](JointNode& node, const JsonField& json) {
      node.*member = reader.id(json);
    };
  };
  const auto bytes_of = [](Bytes JointNode::*member) {
    return [member](JointNode& node, const JsonField& json) { node.*member = {json.count()}; };
  };
  const auto time_of = [](std::chrono::nanoseconds JointNode::*member) {
    return [member](JointNode& node, const JsonField& json) {
      node.*member = std::chrono::nanoseconds(json.count());
    };
  };
  reader.each(graph, "inputs", ids_of(&JointNode::inputs));
  reader.each(graph, "results", ids_of(&JointNode::results));
  reader.each(graph, "root", id_of(&JointNode::root));
  reader.each(graph, "op", id_of(&JointNode::op));
  reader.each(graph, "bytes", bytes_of(&JointNode::bytes));
  reader.each(graph, "unread_bytes", bytes_of(&JointNode::unread));
  reader.each(graph, "temporary_bytes", bytes_of(&JointNode::temporary));
  reader.each(graph, "time_ns", time_of(&JointNode::time));
  reader.each(graph, "saving_ns", time_of(&JointNode::saving));
  reader.each(graph, "layer", [](JointNode& node, const JsonField& json) {
    if (!json.is_null()) node.layer = json.integer32(0);
  });
  reader.mark(graph, "placeholders", &JointNode::is_placeholder);
  reader.mark(graph, "calls", &JointNode::is_call);
  reader.mark(graph, "ops", &JointNode::is_op);
  reader.mark(graph, "tensors", &JointNode::is_tensor);
  reader.mark(graph, "views", &JointNode::is_view);
  reader.mark(graph, "elementwise", &JointNode::is_elementwise);
  reader.mark(graph, "reductions", &JointNode::is_reduction);
  reader.mark(graph, "forward", &JointNode::is_forward);
  reader.mark(graph, "kept", &JointNode::is_kept);
  reader.mark(graph, "overwriting", &JointNode::can_overwrite);
}

// Returns the ops that read a value, directly or through views. `users` are the nodes that read the
// value directly.
NodeIds readers_of(const JointGraph& graph, const NodeIds& users) {
  NodeIds found;
  for (const NodeId user : users) {
    if (!graph.nodes[user].is_view) {
      found.push_back(user);
      continue;
    }
    const NodeIds readers = readers_of(graph, graph.users[user]);
    found.insert(found.end(), readers.begin(), readers.end());
  }
  return found;
}

ElementwiseUse elementwise_use(const JointGraph& graph, NodeId user) {
  const NodeIds readers = readers_of(graph, {user});
  const bool can_be_inside = std::all_of(readers.begin(), readers.end(), [&](NodeId reader) {
    return graph.nodes[reader].is_elementwise || graph.nodes[reader].is_reduction;
  });
  return {user, !readers.empty(), can_be_inside};
}

}  // namespace

JointGraph joint_graph_from_json(const JsonField& field) {
  JointGraph graph;
  graph.nodes.resize(field.at("inputs").size());
  const Reader reader(field, graph.nodes.size());
  read_nodes(reader, graph);
  graph.forward_outputs = reader.ids("forward_outputs");
  graph.dropped_outputs = reader.ids("dropped_outputs");
  graph.freed_outputs = reader.ids("freed_outputs");
  graph.activation_inputs = reader.ids("activation_inputs");
  graph.copied_inputs = reader.ids("copied_inputs");
  graph.tangents = reader.ids("tangents");
  graph.backward_seeds = reader.ids("backward_seeds");
  graph.backward_outputs = reader.ids("backward_outputs");
  graph.parameter_gradients = reader.ids("parameter_gradients");
  graph.frees_tangents = field.at("frees_tangents").boolean();
  graph.bytes_per_second = field.at("bytes_per_second").number();
  complete(graph);
  return graph;
}

NodeIds node_ids_from_json(const JsonField& field, std::size_t num_nodes) {
  NodeIds found;
  found.reserve(field.size());
  for (const JsonField& element : field.elements()) {
    found.push_back(node_id_from_json(element, num_nodes));
  }
  return found;
}

void complete(JointGraph& graph) {
  const std::size_t num_nodes = graph.nodes.size();
  graph.read_roots.assign(num_nodes, {});
  graph.made_roots.assign(num_nodes, {});
  graph.users.assign(num_nodes, {});
  for (const NodeId id : graph.nodes.ids()) {
    const JointNode& node = graph.nodes[id];
    const auto roots_of = [&](const NodeIds& ids) {
      NodeIds roots;
      for (const NodeId each : ids) roots.push_back(graph.nodes[each].root);
      return without_duplicates(roots);
    };
    graph.read_roots[id] = roots_of(node.inputs);
    if (node.is_op) graph.made_roots[id] = roots_of(node.results);
    for (const NodeId input : node.inputs) graph.users[input].push_back(id);
  }
  graph.elementwise_uses.assign(num_nodes, {});
  for (const NodeId id : graph.nodes.ids()) {
    if (!graph.nodes[id].is_elementwise || graph.nodes[id].is_view) continue;
    for (const NodeId user : graph.users[id]) {
      graph.elementwise_uses[id].push_back(elementwise_use(graph, user));
    }
  }
}

IdTable<NodeId, bool> membership(const JointGraph& graph, const NodeIds& nodes) {
  IdTable<NodeId, bool> is_member(graph.nodes.size(), false);
  for (const NodeId id : nodes) is_member[id] = true;
  return is_member;
}

}  // namespace rematch
