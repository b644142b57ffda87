#include "policies/planners/memory_budget.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "policies/planners/block_regions.h"
#include "policies/planners/knapsack.h"
#include "policies/planners/min_cut.h"
#include "policies/predict/region/trace_index.h"
#include "policies/predict/step/held.h"
#include "policies/trace/trace_op.h"

namespace rematch {
namespace {

bool is_dear(const TracedOp& op) {
  return op.op_class == OpClass::kMatmul || op.op_class == OpClass::kAttentionForward ||
         op.draws_random;
}

// Returns the values that backward demands, with their versions. Omits values from outside the
// region.
std::vector<RegionUse> demanded_uses(const RegionGraph& graph) {
  std::vector<RegionUse> uses;
  for (const RegionEvent& event : graph.events) {
    if (event.kind != BackwardEvent::Kind::kDemand) continue;
    const RegionUse& use = graph.slots[*event.slot].use;
    if (graph.values[use.value].producer.has_value()) uses.push_back(use);
  }
  return uses;
}

// One block of the trace, and the planner's figures for it.
class Block {
 public:
  Block(const Trace& trace, OpRange range)
      : trace_(trace), graph_(make_region_graph(trace, range)), uses_(demanded_uses(graph_)) {
    needed_ = closure_of(graph_, kept_if_all_is_recomputed(graph_), uses_);
    find_distances();
  }

  // Returns the items of the knapsack: ops that are recomputed only if the knapsack drops them.
  std::vector<int> items() const {
    std::vector<int> ops;
    for (std::size_t op = 0; op < needed_.size(); ++op) {
      if (needed_[op] && is_dear(traced(op)) && can_be_saved(op))
        ops.push_back(static_cast<int>(op));
    }
    return ops;
  }

  const TracedOp& traced(std::size_t op) const {
    return trace_.ops[graph_.range.first + static_cast<std::int32_t>(op)];
  }

  // Returns for each op whether the minimum cut saves it, given that the ops in `banned` must not
  // be recomputed.
  std::vector<bool> saves(const std::vector<bool>& banned) const {
    const int num_ops = static_cast<int>(graph_.ops.size());
    const int num_values = static_cast<int>(graph_.values.size());
    const int source = num_ops + 2 * num_values;
    const int sink = source + 1;
    const auto before = [&](int value) { return num_ops + 2 * value; };
    const auto after = [&](int value) { return before(value) + 1; };
    MinCut cut(sink + 1);
    for (int value = 0; value < num_values; ++value) {
      if (!is_made(value)) continue;
      cut.add_edge(*graph_.values[value].producer, before(value), MinCut::kUnlimited);
      cut.add_edge(before(value), after(value), weight(value));
    }
    const auto need = [&](const RegionUse& use, int by) {
      if (!is_made(use.value)) return;
      cut.add_edge(after(use.value), by, MinCut::kUnlimited);
      const std::vector<int>& writes = graph_.storages[graph_.values[use.value].storage].writes;
      for (std::int32_t i = 0; i < use.version && i < static_cast<int>(writes.size()); ++i) {
        cut.add_edge(writes[i], by, MinCut::kUnlimited);
      }
    };
    for (int op = 0; op < num_ops; ++op) {
      if (banned[op]) cut.add_edge(source, op, MinCut::kUnlimited);
      for (const RegionUse& read : graph_.ops[op].reads) need(read, op);
    }
    for (const RegionUse& use : uses_) need(use, sink);
    const std::vector<bool> is_before = cut.source_side(source, sink);
    std::vector<bool> saves(graph_.ops.size(), false);
    for (int value = 0; value < num_values; ++value) {
      if (!is_made(value) || !is_before[before(value)] || is_before[after(value)]) continue;
      saves[*graph_.values[value].producer] = true;
    }
    return saves;
  }

 private:
  bool is_made(int value) const {
    return graph_.values[value].producer.has_value() && !graph_.values[value].constant;
  }

  bool can_be_saved(std::size_t op) const {
    const std::vector<int>& outputs = graph_.ops[op].outputs;
    return std::all_of(outputs.begin(), outputs.end(),
                       [&](int value) { return weight(value) < MinCut::kUnlimited; });
  }

  std::int64_t weight(int value) const {
    const RegionValue& described = graph_.values[value];
    const RegionOp& op = graph_.ops[*described.producer];
    const RegionStorage& storage = graph_.storages[described.storage];
    if (op.is_view || !op.writes.empty() || !storage.writes.empty() || storage.outside) {
      return MinCut::kUnlimited;
    }
    constexpr double kStep = 1.1;
    constexpr int kFarthest = 100;
    const int distance = std::clamp(distances_[*described.producer], 1, kFarthest);
    return static_cast<std::int64_t>(static_cast<double>(storage.bytes.count) *
                                     std::pow(kStep, distance));
  }

  // Computes for each op the number of ops from the op to backward, on the shortest path. The
  // number is 1 if backward reads the op's result.
  void find_distances() {
    constexpr int kNever = 1'000'000;
    distances_.assign(graph_.ops.size(), kNever);
    for (const RegionUse& use : uses_) distances_[*graph_.values[use.value].producer] = 1;
    for (std::size_t op = graph_.ops.size(); op-- > 0;) {
      for (const RegionUse& read : graph_.ops[op].reads) {
        const OptionalIndex producer = graph_.values[read.value].producer;
        if (!producer.has_value()) continue;
        distances_[*producer] = std::min(distances_[*producer], distances_[op] + 1);
      }
    }
  }

  const Trace& trace_;
  RegionGraph graph_;
  std::vector<RegionUse> uses_;
  // indexed by op: whether backward needs the op to be recomputed if nothing is saved
  std::vector<bool> needed_;
  std::vector<int> distances_;  // indexed by op
};

struct ItemOfBlock {
  std::size_t block = 0;
  int op = 0;
  Bytes bytes;
};

// Sorts by descending size, as PyTorch does. Equal sizes stay in the order in which they ran.
std::vector<ItemOfBlock> all_items(const Trace& trace, const std::vector<Block>& blocks) {
  std::vector<ItemOfBlock> items;
  for (std::size_t block = 0; block < blocks.size(); ++block) {
    for (int op : blocks[block].items()) {
      items.push_back({block, op, fresh_bytes(trace, blocks[block].traced(op))});
    }
  }
  std::stable_sort(items.begin(), items.end(),
                   [](const ItemOfBlock& a, const ItemOfBlock& b) { return a.bytes > b.bytes; });
  return items;
}

}  // namespace

std::variant<Plan, Rejected> plan_for_memory_budget(const Trace& trace, const Profile& profile,
                                                    double budget, KnapsackSolver solver) {
  if (!(budget >= 0 && budget <= 1)) {
    return Rejected{"a memory budget must be a fraction from 0 to 1, not " +
                    std::to_string(budget)};
  }
  auto found = block_regions(trace);
  if (auto* rejected = std::get_if<Rejected>(&found)) return std::move(*rejected);
  const auto& regions = std::get<BlockRegions>(found);
  std::vector<Block> blocks;
  for (OpRange range : regions.ranges) blocks.emplace_back(trace, range);
  const Bytes unit =
      held_after_forward(trace, plan_with_saves(trace, regions, {}, "none")).total() -
      held_after_forward(trace, regions.plan).total();
  const std::vector<ItemOfBlock> items = all_items(trace, blocks);
  std::vector<KnapsackItem> knapsack;
  for (const ItemOfBlock& item : items) {
    const OpId op = regions.ranges[item.block].first + item.op;
    const std::chrono::duration<double, std::milli> time = profile.forward[op];
    knapsack.push_back({static_cast<double>(item.bytes.count) /
                            static_cast<double>(std::max<std::int64_t>(1, unit.count)),
                        time.count()});
  }
  std::vector<std::vector<bool>> banned;
  for (OpRange range : regions.ranges) banned.emplace_back(range.end - range.first, false);
  const auto chosen = solver == KnapsackSolver::kDp ? dp_knapsack(knapsack, budget)
                                                    : best_knapsack(knapsack, budget);
  for (int index : chosen) banned[items[index].block][items[index].op] = true;
  std::vector<BlockSaves> saves;
  for (std::size_t block = 0; block < blocks.size(); ++block) {
    saves.push_back({block, blocks[block].saves(banned[block])});
  }
  const std::string name = solver == KnapsackSolver::kDp ? "pytorch_dp" : "pytorch_ilp";
  return plan_with_saves(trace, regions, saves, name + "(" + without_zeros(budget) + ")");
}

}  // namespace rematch
