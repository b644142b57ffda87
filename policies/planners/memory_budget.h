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
#include <variant>

#include "policies/plan/plan.h"
#include "policies/plan/rejected.h"
#include "policies/trace/profile.h"
#include "policies/trace/trace.h"

namespace rematch {

enum class KnapsackSolver : std::uint8_t { kDp, kIlp };

// `budget` from 0 (every block recomputed) to 1. Rejected: no such budget, or no blocks.
std::variant<Plan, Rejected> plan_for_memory_budget(const Trace& trace, const Profile& profile,
                                                    double budget, KnapsackSolver solver);

}  // namespace rematch
