// Applies PyTorch 2.11's activation_memory_budget (choose_saved_values_set of
// torch/_functorch/partitioners.py) to a trace, as a baseline.
//
// Note [The memory budget over a trace] PyTorch's planner works on a compiled graph of forward and
// backward. This planner works on the blocks of a trace. By default, matmuls, attention and random
// draws must not be recomputed. These ops are the items of a knapsack, and the value of an item is
// its time. The knapsack fills the budget; the items that it drops may be recomputed. A minimum cut
// then saves the fewest bytes from which all other values can be recomputed. Values farther from
// backward cost slightly more, as in PyTorch.
//
// This planner differs from PyTorch's in three ways:
// - The unit of the budget differs. Here it is what autograd keeps in blocks without checkpointing,
//   minus what it keeps with every block recomputed. In PyTorch, it comes from a first cut.
// - The input of every block is always kept. PyTorch's plans often lack it, which raises their peak
//   (PyTorch's issue 197838).
// - Nothing is fused. In PyTorch, a value costs more if fused code must write it to memory to save
//   it. Here, no value does.
#pragma once

#include <cstdint>
#include <limits>
#include <variant>
#include <vector>

#include "policies/base/id.h"
#include "policies/plan/plan.h"
#include "policies/trace/profile.h"
#include "policies/trace/trace.h"

namespace rematch {

enum class KnapsackSolver : std::uint8_t { kDp, kIlp };

// `budget` is a share from 0 (every block recomputed) to 1. Returns Rejected for any other budget,
// or if the model has no blocks.
std::variant<Plan, Rejected> plan_for_memory_budget(const Trace& trace, const Profile& profile,
                                                    double budget, KnapsackSolver solver);

// Finds the minimum cut of a directed graph with integer capacities, by Dinic's algorithm.

class MinCut {
 public:
  static constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max() / 4;

  explicit MinCut(int num_nodes) : edges_from_(num_nodes) {}

  void add_edge(int from, int to, std::int64_t capacity);

  // Returns for each node whether it is on the source's side of the minimum cut nearest to the
  // source. Call only once.
  std::vector<bool> source_side(int source, int sink);

 private:
  struct Edge {
    int to = 0;
    std::int64_t left = 0;  // remaining capacity
  };
  bool find_levels(int source, int sink);
  std::int64_t push(int node, int sink, std::int64_t most);

  std::vector<Edge> edges_;  // an edge and its reverse are adjacent
  std::vector<std::vector<int>> edges_from_;
  // Number of steps from the source, indexed by node. Absent: the node is not reachable.
  std::vector<OptionalIndex> levels_;
  // indexed by node: earlier edges of the node cannot carry more flow
  std::vector<std::size_t> next_of_;
};

}  // namespace rematch
