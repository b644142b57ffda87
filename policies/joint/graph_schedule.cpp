#include "policies/joint/graph_schedule.h"

#include <algorithm>
#include <map>
#include <utility>

#include "policies/joint/fused_neighbours.h"

namespace rematch {
namespace {

// Returns for each node whether it is in `wanted`, or whether such a node depends on it.
IdTable<NodeId, bool> needed_for(const JointGraph& graph, NodeIds wanted) {
  IdTable<NodeId, bool> is_needed(graph.nodes.size(), false);
  while (!wanted.empty()) {
    const NodeId id = wanted.back();
    wanted.pop_back();
    if (is_needed[id]) continue;
    is_needed[id] = true;
    const NodeIds& inputs = graph.nodes[id].inputs;
    wanted.insert(wanted.end(), inputs.begin(), inputs.end());
  }
  return is_needed;
}

// Orders backward so that each layer is recomputed as a whole.
class LayerGrouping {
 public:
  LayerGrouping(const JointGraph& graph, const NodeIds& backward)
      : graph_(graph), is_missing_(membership(graph, backward)) {
    for (const NodeId id : backward) {
      if (const OptionalIndex layer = layer_of(id); layer.has_value())
        groups_[*layer].push_back(id);
    }
    for (const NodeId id : backward) {
      if (const OptionalIndex layer = layer_of(id); layer.has_value()) add_layer(*layer);
      if (is_missing_[id]) add(id);
    }
  }

  NodeIds take_order() { return std::move(order_); }

 private:
  // Returns the layer of a node of forward that backward runs again.
  OptionalIndex layer_of(NodeId id) const {
    const JointNode& node = graph_.nodes[id];
    return node.is_forward ? graph_.nodes[node.op].layer : std::nullopt;
  }

  // Adds the layer's nodes in forward's order.
  void add_layer(std::int32_t layer) {
    const auto group = groups_.extract(layer);
    if (group.empty()) return;
    NodeIds members = group.mapped();
    std::sort(members.begin(), members.end());
    for (const NodeId id : members) add(id);
  }

  // Adds the node after its missing inputs.
  void add(NodeId first) {
    NodeIds stack = {first};
    while (!stack.empty()) {
      const NodeId id = stack.back();
      const std::size_t size_before = stack.size();
      if (is_missing_[id]) {
        for (const NodeId input : graph_.nodes[id].inputs) {
          if (is_missing_[input]) stack.push_back(input);
        }
      }
      if (stack.size() > size_before) continue;
      stack.pop_back();
      if (!is_missing_[id]) continue;
      is_missing_[id] = false;
      order_.push_back(id);
    }
  }

  const JointGraph& graph_;
  IdTable<NodeId, bool> is_missing_;  // nodes of backward that are not in `order_` yet
  std::map<std::int32_t, NodeIds> groups_;
  NodeIds order_;
};

// Sets forward and the values that it saves.
void set_forward(const JointGraph& graph, const NodeIds& offered, const NodeIds& backward,
                 GraphSchedule& schedule) {
  IdTable<NodeId, bool> is_used = membership(graph, graph.backward_outputs);
  for (const NodeId id : backward) {
    for (const NodeId input : graph.nodes[id].inputs) is_used[input] = true;
  }
  std::copy_if(offered.begin(), offered.end(), std::back_inserter(schedule.saved),
               [&](NodeId id) { return is_used[id]; });
  NodeIds wanted = schedule.saved;
  wanted.insert(wanted.end(), graph.forward_outputs.begin(), graph.forward_outputs.end());
  const IdTable<NodeId, bool> is_needed = needed_for(graph, std::move(wanted));
  for (const NodeId id : graph.nodes.ids()) {
    if (graph.nodes[id].is_call && is_needed[id]) schedule.forward.push_back(id);
  }
}

}  // namespace

GraphSchedule schedule_of(const JointGraph& graph, const NodeIds& offered, Fusion fusion) {
  GraphSchedule schedule;
  NodeIds backward = demand_order(graph, offered);
  set_forward(graph, offered, backward, schedule);
  std::copy_if(backward.begin(), backward.end(), std::back_inserter(schedule.recomputed),
               [&](NodeId id) { return graph.nodes[id].is_forward && graph.nodes[id].is_op; });
  NodeIds grouped = LayerGrouping(graph, backward).take_order();
  if (fusion == Fusion::kElementwise) {
    backward = with_fused_neighbours(graph, backward);
    grouped = with_fused_neighbours(graph, grouped);
  }
  if (grouped != backward) schedule.by_layer = std::move(grouped);
  schedule.by_first_use = std::move(backward);
  return schedule;
}

NodeIds demand_order(const JointGraph& graph, const NodeIds& available) {
  IdTable<NodeId, bool> is_found = membership(graph, available);
  for (const NodeId id : graph.nodes.ids()) {
    if (!graph.nodes[id].is_call) is_found[id] = true;
  }
  NodeIds order;
  NodeIds stack;
  for (const NodeId seed : graph.backward_seeds) {
    if (is_found[seed]) continue;
    const auto first = static_cast<std::ptrdiff_t>(order.size());
    is_found[seed] = true;
    stack.push_back(seed);
    while (!stack.empty()) {
      const NodeId id = stack.back();
      stack.pop_back();
      order.push_back(id);
      for (const NodeId input : graph.nodes[id].inputs) {
        if (is_found[input]) continue;
        is_found[input] = true;
        stack.push_back(input);
      }
    }
    std::sort(order.begin() + first, order.end());
  }
  return order;
}

}  // namespace rematch
