// The knapsacks by which PyTorch 2.11 chooses what to save under a memory budget
// (torch/_functorch/_activation_checkpointing/knapsack.py). They know items by memory and runtime
// only: that recomputing one item may need another is not theirs to see.
#pragma once

#include <vector>

namespace rematch {

struct KnapsackItem {
  double memory = 0;   // share of what a budget of 1 holds
  double runtime = 0;  // what saving it is worth
};

// dp_knapsack, choice for choice: memory is rounded to 1e-4 and values add up in float32, so the
// items chosen may exceed the budget by half a step each, and small values beside large ones are
// lost. Indices of the saved items, ascending.
std::vector<int> dp_knapsack(const std::vector<KnapsackItem>& items, double budget);

// The problem of ilp_knapsack: the most runtime within the budget. Found by dynamic
// programming over undominated sums, so it is the optimum, where SciPy's solver stops at a gap of
// 1e-4; among sets of equal runtime it may choose another.
std::vector<int> best_knapsack(const std::vector<KnapsackItem>& items, double budget);

}  // namespace rematch
