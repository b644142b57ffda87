#include "policies/planners/sac_ops.h"

#include <cmath>
#include <numeric>

#include "policies/planners/knapsack.h"

namespace rematch {
namespace {

enum class Rule : std::uint8_t { kFree, kSave, kRecompute, kBoth };

Rule both(Rule a, Rule b) {
  if (a == Rule::kFree || a == b) return b;
  return b == Rule::kFree ? a : Rule::kBoth;
}

// Groups of ops that are saved or recomputed together. Each op maps to the first op of its group.
class Groups {
 public:
  explicit Groups(const SacOps& ops)
      : first_(ops.memory_bytes.size()), rules_(ops.memory_bytes.size(), Rule::kFree) {
    std::iota(first_.begin(), first_.end(), 0);
    for (std::size_t i = 1; i < ops.random.size(); ++i) join(ops.random[i - 1], ops.random[i]);
    for (const auto& [op, parent] : ops.in_place) join(op, parent);
    if (ops.must_store_random) {
      for (int op : ops.random) demand(op, Rule::kSave);
    }
    for (int op : ops.views) demand(op, Rule::kRecompute);
    for (const auto& [op, parent] : ops.in_place) {
      if (op == parent) demand(op, Rule::kSave);
    }
  }

  int first_of(int op) const {
    while (first_[op] != op) op = first_[op];
    return op;
  }
  Rule rule_of(int op) const { return rules_[first_of(op)]; }

 private:
  void join(int a, int b) {
    a = first_of(a);
    b = first_of(b);
    if (a != b) first_[std::max(a, b)] = std::min(a, b);
  }
  void demand(int op, Rule rule) { rules_[first_of(op)] = both(rules_[first_of(op)], rule); }

  std::vector<int> first_;
  std::vector<Rule> rules_;
};

}  // namespace

std::optional<std::vector<bool>> sac_saves(const SacOps& ops, double budget_ratio) {
  const auto num_ops = static_cast<int>(ops.memory_bytes.size());
  const Groups groups(ops);
  std::int64_t all = 0;
  std::int64_t forced = 0;
  std::vector<KnapsackItem> items(ops.memory_bytes.size());
  for (int op = 0; op < num_ops; ++op) {
    all += ops.memory_bytes[op];
    const Rule rule = groups.rule_of(op);
    if (rule == Rule::kBoth) return std::nullopt;
    if (rule == Rule::kSave) forced += ops.memory_bytes[op];
    KnapsackItem& item = items[groups.first_of(op)];
    if (rule != Rule::kFree) continue;
    item.memory += static_cast<double>(ops.memory_bytes[op]);
    item.runtime += ops.runtimes_ms[op];
  }
  const double most = std::ceil(budget_ratio * static_cast<double>(all));
  const double left = most - static_cast<double>(forced);
  if (left < 0) return std::nullopt;
  std::vector<bool> chosen(items.size(), false);
  for (int index : best_knapsack(items, left)) chosen[index] = true;
  std::vector<bool> saves;
  for (int op = 0; op < num_ops; ++op) {
    const Rule rule = groups.rule_of(op);
    saves.push_back(rule == Rule::kSave || (rule == Rule::kFree && chosen[groups.first_of(op)]));
  }
  return saves;
}

}  // namespace rematch
