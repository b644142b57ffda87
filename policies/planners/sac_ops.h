// Which ops of one module PyTorch 2.11's selective checkpointing saves for a share of its bytes
// (get_optimal_checkpointing_policy_per_module of torch/distributed/_tools/sac_ilp.py). Knows one
// module; sac_modules.h chooses the share of each.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace rematch {

// Ops by index; times in milliseconds, as PyTorch has them.
struct SacOps {
  std::vector<std::int64_t> memory_bytes;
  std::vector<double> runtimes_ms;
  std::vector<int> views;   // never saved
  std::vector<int> random;  // all or none of them
  // An op that writes in place and the op that made what it writes: both or none. The op itself:
  // it writes what came from outside, so it is saved.
  std::vector<std::pair<int, int>> in_place;
  bool must_store_random = false;
};

// By op: is it saved. The most runtime spared within ceil(budget_ratio of all bytes), where
// PyTorch's solver may stop 5 % short. Nothing: no choice meets the rules.
std::optional<std::vector<bool>> sac_saves(const SacOps& ops, double budget_ratio);

}  // namespace rematch
