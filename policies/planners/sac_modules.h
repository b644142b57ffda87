// Chooses which modules PyTorch 2.11's selective checkpointing recomputes, and what share of its
// bytes each module discards. The peak must stay within a budget (sac_milp of
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
  bool is_leaf = false;  // a leaf is never checkpointed
  int post_order = 0;    // position in the post-order of forward
  // bytes that the module keeps from forward to backward without checkpointing
  std::int64_t kept_bytes = 0;
  std::int64_t all_bytes = 0;  // bytes of the outputs of all its ops; at least kept_bytes
  // bytes kept by all modules up to this one, including its output
  std::int64_t total_kept_bytes = 0;
  std::int64_t gradient_bytes = 0;  // peak bytes of activation gradients in its backward
  std::int64_t born_bytes = 0;      // bytes of parameter gradients when its backward begins
  double runtime_ms = 0;            // total time of its ops
  // Straight lines that map the discarded share of all_bytes to a share of the runtime. At each
  // point, the highest line applies.
  std::vector<FittedLine> lines;
};

struct SacModel {
  std::vector<SacModule> modules;  // a module precedes the modules inside it
  std::int64_t parameter_bytes = 0;
  int world_size = 1;
};

struct SacSolution {
  // The share of all_bytes that each module discards. Absent: the module is not checkpointed.
  std::vector<std::optional<double>> discards;
  double recompute_ms = 0;
  // whether it is proven that no solution is better by more than `gap_ratio`
  bool is_proven = true;
};

// The default gap: PyTorch's solver stops at this distance from the optimum.
inline constexpr double kSacGapRatio = 0.05;
// Returns nullopt if no choice of modules is within the budget.
std::optional<SacSolution> sac_discards(const SacModel& model, double budget_bytes,
                                        double gap_ratio = kSacGapRatio);

}  // namespace rematch
