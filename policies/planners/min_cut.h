// The minimum cut of a directed graph.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "policies/base/id.h"

namespace rematch {

// Finds the minimum cut of a directed graph with integer capacities, by Dinic's algorithm.
class MinCut {
 public:
  static constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max() / 4;

  explicit MinCut(int num_nodes) : edges_from_(num_nodes) {}

  void add_edge(int from, int to, std::int64_t capacity);

  // Returns for each node whether it is on the source's side of the minimum cut nearest to the
  // source. Call only one of these functions, and only once.
  std::vector<bool> source_side(int source, int sink);
  // Returns for each node whether it is on the sink's side of the minimum cut nearest to the sink.
  std::vector<bool> sink_side(int source, int sink);

 private:
  struct Edge {
    int to = 0;
    std::int64_t left = 0;  // remaining capacity
  };
  void find_maximum_flow(int source, int sink);
  bool find_levels(int source, int sink);
  std::int64_t push(int node, int sink, std::int64_t most);

  std::vector<Edge> edges_;  // an edge and its reverse edge are adjacent in the list
  std::vector<std::vector<int>> edges_from_;
  // Number of edges from the source, indexed by node. Absent: the node is not reachable.
  std::vector<OptionalIndex> levels_;
  // indexed by node: the first edge of the node that may have remaining capacity
  std::vector<std::size_t> next_of_;
};

}  // namespace rematch
