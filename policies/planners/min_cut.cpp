#include "policies/planners/min_cut.h"

#include <algorithm>
#include <optional>

namespace rematch {

void MinCut::add_edge(int from, int to, std::int64_t capacity) {
  edges_from_[from].push_back(static_cast<int>(edges_.size()));
  edges_.push_back({to, capacity});
  edges_from_[to].push_back(static_cast<int>(edges_.size()));
  edges_.push_back({from, 0});
}

std::vector<bool> MinCut::source_side(int source, int sink) {
  find_maximum_flow(source, sink);
  std::vector<bool> is_reached;
  for (const OptionalIndex level : levels_) is_reached.push_back(level.has_value());
  return is_reached;
}

std::vector<bool> MinCut::sink_side(int source, int sink) {
  find_maximum_flow(source, sink);
  std::vector<bool> reaches_sink(edges_from_.size(), false);
  reaches_sink[sink] = true;
  std::vector<int> stack = {sink};
  while (!stack.empty()) {
    const int node = stack.back();
    stack.pop_back();
    for (const int index : edges_from_[node]) {
      const int before = edges_[index].to;
      if (edges_[index ^ 1].left == 0 || reaches_sink[before]) continue;
      reaches_sink[before] = true;
      stack.push_back(before);
    }
  }
  return reaches_sink;
}

void MinCut::find_maximum_flow(int source, int sink) {
  while (find_levels(source, sink)) {
    next_of_.assign(edges_from_.size(), 0);
    while (push(source, sink, kUnlimited) > 0) {
    }
  }
}

// Computes the level of every node that is reachable over edges with remaining capacity. Returns
// whether the sink is reachable.
bool MinCut::find_levels(int source, int sink) {
  levels_.assign(edges_from_.size(), std::nullopt);
  levels_[source] = 0;
  std::vector<int> reached = {source};
  for (std::size_t i = 0; i < reached.size(); ++i) {
    for (int index : edges_from_[reached[i]]) {
      const Edge& edge = edges_[index];
      if (edge.left == 0 || levels_[edge.to].has_value()) continue;
      levels_[edge.to] = *levels_[reached[i]] + 1;
      reached.push_back(edge.to);
    }
  }
  return levels_[sink].has_value();
}

// Augments along one path of the level graph. Returns the flow added.
std::int64_t MinCut::push(int node, int sink, std::int64_t most) {
  if (node == sink) return most;
  for (std::size_t& next = next_of_[node]; next < edges_from_[node].size(); ++next) {
    const int index = edges_from_[node][next];
    Edge& edge = edges_[index];
    if (edge.left == 0 || levels_[edge.to] != *levels_[node] + 1) continue;
    const std::int64_t pushed = push(edge.to, sink, std::min(most, edge.left));
    if (pushed == 0) continue;
    edge.left -= pushed;
    edges_[index ^ 1].left += pushed;
    return pushed;
  }
  return 0;
}

}  // namespace rematch
