// Which modules PyTorch 2.11's selective checkpointing recomputes, and what share of their bytes
// each discards, so that the peak stays within a budget (sac_milp of
// torch/distributed/_tools/sac_ilp.py). The peak is PyTorch's own estimate, not the simulator's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "policies/planners/line_fit.h"

namespace rematch {

// ModStats of torch/distributed/_tools/ilp_utils.py, as far as the planner reads them.
struct SacModule {
  std::string name;
  bool is_leaf = false;               // never checkpointed
  int post_order = 0;                 // of forward
  std::int64_t kept_bytes = 0;        // from forward to backward without checkpointing
  std::int64_t all_bytes = 0;         // of all its ops' outputs; not below kept_bytes
  std::int64_t total_kept_bytes = 0;  // by all modules up to it, its output included
  std::int64_t gradient_bytes = 0;    // of activations, most in its backward
  std::int64_t born_bytes = 0;        // gradients of parameters when its backward begins
  double runtime_ms = 0;              // of all its ops
  // Share of the runtime for a discarded share of all_bytes: the highest of these lines.
  std::vector<FittedLine> lines;
};

struct SacModel {
  std::vector<SacModule> modules;  // parents before their parts
  std::int64_t parameter_bytes = 0;
  int world_size = 1;
};

struct SacSolution {
  // By module: the share of all_bytes that it discards; nothing where it is not checkpointed.
  std::vector<std::optional<double>> discards;
  double recompute_ms = 0;
  bool is_proven = true;  // no better one, but for the gap
};

// PyTorch's solver stops at this much above the best.
inline constexpr double kSacGapRatio = 0.05;
// Nothing: no choice of modules is within the budget.
std::optional<SacSolution> sac_discards(const SacModel& model, double budget_bytes,
                                        double gap_ratio = kSacGapRatio);

}  // namespace rematch
