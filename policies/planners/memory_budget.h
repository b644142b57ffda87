// Applies PyTorch 2.11's activation_memory_budget (choose_saved_values_set of
// torch/_functorch/partitioners.py) to a trace, as a baseline.
//
// Note [The memory budget over a trace] PyTorch's planner works on a compiled graph of forward and
// backward. This planner works on the blocks of a trace. Matmuls, attention and random draws are
// the items of a knapsack, and the value of an item is its time. The knapsack fills the budget.
// Items outside of the knapsack may be recomputed, like all other ops. A minimum cut then saves the
// fewest bytes from which all other values can be recomputed. Values farther from backward cost
// slightly more, as in PyTorch.
//
// This planner differs from PyTorch's in three ways:
// - The unit of the budget differs. Here, a budget of 1 is the bytes that autograd keeps in blocks
//   without checkpointing, minus the bytes kept with every block recomputed. In PyTorch, the unit
//   is computed from a first minimum cut.
// - The input of every block is always kept. PyTorch's plans often do not keep it, which raises
//   their peak (PyTorch's issue 197838).
// - Nothing is fused. In PyTorch, a value costs more if fused code writes it to memory only to save
//   it.
#pragma once

#include <cstdint>
#include <variant>

#include "policies/base/rejected.h"
#include "policies/plan/plan.h"
#include "policies/trace/profile.h"
#include "policies/trace/trace.h"

namespace rematch {

enum class KnapsackSolver : std::uint8_t { kDp, kIlp };

// `budget` is a share from 0 (every block recomputed) to 1. Returns Rejected for any other budget,
// or if the model has no blocks.
std::variant<Plan, Rejected> plan_for_memory_budget(const Trace& trace, const Profile& profile,
                                                    double budget, KnapsackSolver solver);

}  // namespace rematch
