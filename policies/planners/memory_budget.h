// PyTorch 2.11's activation_memory_budget (choose_saved_values_set of
// torch/_functorch/partitioners.py) over a trace, as a baseline.
//
// Note [The memory budget over a trace]
// Theirs works on a compiled graph of forward and backward, ours on blocks as they ran. What it may
// not recompute of itself (matmuls, attention, random draws) are the items of a knapsack, weighed
// by its own time; what the knapsack gives up may be recomputed, and a minimum cut saves as little
// as makes the rest available, nearer to backward a little dearer, as theirs. Where ours must
// differ: the unit of the budget is what autograd keeps in blocks without checkpointing, less what
// it keeps with every block recomputed, where theirs is its own first cut; the input of every block
// is always kept, which their plans often lack and pay for with their peak (PyTorch's issue
// 197838); and nothing is fused, so no value is dearer for having to be written out.
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

// `budget` from 0 (every block recomputed) to 1. Rejected: no such budget, or no blocks.
std::variant<Plan, Rejected> plan_for_memory_budget(const Trace& trace, const Profile& profile,
                                                    double budget, KnapsackSolver solver);

// The smallest cut of a directed graph with whole capacities, by Dinic's algorithm.

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
