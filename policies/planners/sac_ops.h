// Chooses which ops of one module PyTorch 2.11's selective checkpointing saves for a share of its
// bytes (get_optimal_checkpointing_policy_per_module of torch/distributed/_tools/sac_ilp.py).
// Considers a single module; sac_modules.h chooses the share of each.
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
  std::vector<int> views;   // never saved
  std::vector<int> random;  // saved all together or not at all
  // Pairs of an in-place op and the op that made the written tensor; both are saved or neither. If
  // the second is the op itself, the op writes a tensor from outside and is saved.
  std::vector<std::pair<int, int>> in_place;
  bool must_store_random = false;
};

// Returns for each op whether it is saved. Saves the most runtime within ceil(budget_ratio * all
// bytes); PyTorch's solver may stop 5 % below this. Returns nullopt if no choice satisfies the
// rules.
std::optional<std::vector<bool>> sac_saves(const SacOps& ops, double budget_ratio);

}  // namespace rematch
