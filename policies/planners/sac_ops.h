// Chooses which ops of one module PyTorch 2.11's selective checkpointing saves, given a share of
// the module's bytes (get_optimal_checkpointing_policy_per_module of
// torch/distributed/_tools/sac_ilp.py). Considers a single module; sac_modules.h chooses the share
// of each module.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace rematch {

// The ops of a module by index. Times are in milliseconds, as in PyTorch.
struct SacOps {
  std::vector<std::int64_t> memory_bytes;
  std::vector<double> runtimes_ms;
  std::vector<int> views;   // indices of views, which are never saved
  std::vector<int> random;  // indices of random ops; either all of them are saved or none
  // Pairs of an in-place op and the op that made the written tensor. Either both ops are saved, or
  // neither of them. If the tensor comes from outside, the pair contains the in-place op twice, and
  // the op is saved.
  std::vector<std::pair<int, int>> in_place;
  bool must_store_random = false;
};

// Returns for each op whether it is saved. The saved ops take at most ceil(budget_ratio * all
// bytes) and have the largest possible total runtime. PyTorch's solver may stop 5 % below this
// optimum. Returns nullopt if no choice satisfies all constraints.
std::optional<std::vector<bool>> sac_saves(const SacOps& ops, double budget_ratio);

}  // namespace rematch
