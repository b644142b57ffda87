// The two knapsack algorithms with which PyTorch 2.11 chooses what to save under a memory budget
// (torch/_functorch/_activation_checkpointing/knapsack.py). An item has only memory and runtime.
// The algorithms ignore that recomputing one item may require another item.
#pragma once

#include <vector>

namespace rematch {

struct KnapsackItem {
  double memory = 0;   // share of the memory that a budget of 1 allows
  double runtime = 0;  // time saved in recompute if the item is kept
};

// Makes the same choices as PyTorch's dp_knapsack. Memory is rounded to multiples of 1e-4, so each
// chosen item may add up to 5e-5 more than the budget allows. Values are added in float32, so small
// values next to large ones are lost. Returns ascending indices of the saved items.
std::vector<int> dp_knapsack(const std::vector<KnapsackItem>& items, double budget);

// Solves the problem of PyTorch's ilp_knapsack: saves the most runtime within the budget. Dynamic
// programming over undominated sums finds the optimum, while SciPy's solver stops at a gap of 1e-4.
// Among sets of equal runtime, the choice may differ from PyTorch's. Returns ascending indices of
// the saved items.
std::vector<int> best_knapsack(const std::vector<KnapsackItem>& items, double budget);

}  // namespace rematch
