// Chooses which modules PyTorch 2.11's selective checkpointing recomputes, and what share of its
// bytes each discards. The peak must stay within a budget (sac_milp of
// torch/distributed/_tools/sac_ilp.py). The peak is PyTorch's own estimate, not the simulator's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "policies/planners/line_fit.h"

namespace rematch {

// The fields of ModStats (torch/distributed/_tools/ilp_utils.py) that the planner reads.
struct SacModule {
  std::string name;
  bool is_leaf = false;               // a leaf is never checkpointed
  int post_order = 0;                 // post-order of forward
  std::int64_t kept_bytes = 0;        // kept from forward to backward without checkpointing
  std::int64_t all_bytes = 0;         // bytes of all its ops' outputs; at least kept_bytes
  std::int64_t total_kept_bytes = 0;  // kept by all modules up to this one; includes its output
  std::int64_t gradient_bytes = 0;    // the most gradients of activations during its backward
  std::int64_t born_bytes = 0;        // gradients of parameters when its backward begins
  double runtime_ms = 0;              // sum over its ops
  // Lines that give the share of the runtime for a discarded share of all_bytes. The highest line
  // applies.
  std::vector<FittedLine> lines;
};

struct SacModel {
  std::vector<SacModule> modules;  // parents before their children
  std::int64_t parameter_bytes = 0;
  int world_size = 1;
};

struct SacSolution {
  // The share of all_bytes that each module discards. Absent: the module is not checkpointed.
  std::vector<std::optional<double>> discards;
  double recompute_ms = 0;
  bool is_proven = true;  // no better solution exists, apart from the gap
};

// PyTorch's solver stops at this distance from the optimum.
inline constexpr double kSacGapRatio = 0.05;
// Returns nullopt if no choice of modules is within the budget.
std::optional<SacSolution> sac_discards(const SacModel& model, double budget_bytes,
                                        double gap_ratio = kSacGapRatio);

}  // namespace rematch
