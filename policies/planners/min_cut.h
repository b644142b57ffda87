// The smallest cut of a directed graph with whole capacities, by Dinic's algorithm.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "policies/base/id.h"

namespace rematch {

class MinCut {
 public:
  static constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max() / 4;

  explicit MinCut(int num_nodes) : edges_from_(num_nodes) {}

  void add_edge(int from, int to, std::int64_t capacity);

  // By node: on the source's side of the cut that lies nearest to the source. Call once.
  std::vector<bool> source_side(int source, int sink);

 private:
  struct Edge {
    int to = 0;
    std::int64_t left = 0;  // of its capacity
  };
  bool find_levels(int source, int sink);
  std::int64_t push(int node, int sink, std::int64_t most);

  std::vector<Edge> edges_;  // an edge and its reverse side by side
  std::vector<std::vector<int>> edges_from_;
  std::vector<OptionalIndex> levels_;  // by node: steps from the source, if it is reached
  std::vector<std::size_t> next_of_;   // by node: edges before it lead nowhere
};

}  // namespace rematch
