#include "policies/search/region/save_sets.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

#include "policies/base/choice_lists.h"
#include "policies/search/region/thin.h"

namespace rematch {
namespace {

using std::chrono::nanoseconds;

// Returns whether saving the op that makes `value` keeps the value. Must agree with kept_values().
bool can_be_kept(const RegionGraph& graph, int value) {
  const RegionValue& described = graph.values[value];
  if (described.constant || !described.producer.has_value()) return false;
  const RegionOp& op = graph.ops[*described.producer];
  const RegionStorage& storage = graph.storages[described.storage];
  return !op.is_view && op.writes.empty() && !storage.outside && storage.writes.empty();
}

class Prices {
 public:
  Prices(const RegionGraph& graph, const std::vector<bool>& free_storages)
      : graph_(graph), free_(free_storages) {}

  // Returns the bytes that are held if the op is saved.
  Bytes of_op(int op) const {
    std::vector<int> storages;
    for (int output : graph_.ops[op].outputs) {
      if (can_be_kept(graph_, output)) storages.push_back(graph_.values[output].storage);
    }
    return sum(std::move(storages));
  }

  Bytes of_constants() const {
    std::vector<int> storages;
    for (const RegionValue& value : graph_.values) {
      if (value.constant && !graph_.storages[value.storage].outside) {
        storages.push_back(value.storage);
      }
    }
    return sum(std::move(storages));
  }

 private:
  Bytes sum(std::vector<int> storages) const {
    std::sort(storages.begin(), storages.end());
    storages.erase(std::unique(storages.begin(), storages.end()), storages.end());
    Bytes bytes;
    for (int storage : storages) {
      if (free_.empty() || !free_[storage]) bytes += graph_.storages[storage].bytes;
    }
    return bytes;
  }

  const RegionGraph& graph_;
  const std::vector<bool>& free_;
};

// Returns the time of an op. For an op that starts a collective, adds the time of its waits from op
// `first_wait` on, because these waits run again too.
std::int64_t time_with_waits(const RegionGraph& graph, const SaveSetCosts& costs, int op,
                             int first_wait) {
  std::int64_t time = costs.op_times[op].count();
  for (const int wait : graph.ops[op].waits) {
    if (wait >= first_wait) time += costs.op_times[wait].count();
  }
  return time;
}

// A choice of saved ops among the ops that have been decided so far.
struct SaveLabel {
  std::int64_t bytes = 0;
  std::int64_t time_ns = 0;
  OptionalIndex last;  // index into the program's saved_ops_
};

void keep_undominated(std::vector<SaveLabel>& labels) {
  std::sort(labels.begin(), labels.end(), [](const SaveLabel& a, const SaveLabel& b) {
    return std::pair(a.bytes, a.time_ns) < std::pair(b.bytes, b.time_ns);
  });
  std::size_t kept = 0;
  for (const SaveLabel& label : labels) {
    if (kept == 0 || label.time_ns < labels[kept - 1].time_ns) labels[kept++] = label;
  }
  labels.resize(kept);
}

SaveSets to_sets(const std::vector<SaveLabel>& labels, const ChoiceLists<int>& saved_ops,
                 Bytes constants, std::int64_t gap) {
  SaveSets result;
  result.time_gap = nanoseconds(gap);
  for (const SaveLabel& label : labels) {
    std::vector<int> ops = saved_ops.list(label.last);
    std::sort(ops.begin(), ops.end());
    result.sets.push_back(
        {constants + Bytes{label.bytes}, nanoseconds(label.time_ns), std::move(ops)});
  }
  return result;
}

// Note [Why closure costs need a frontier] On demand, recompute runs an op that is not kept if
// backward or another recomputed op needs its result. The cost of a save set is therefore not a sum
// over its ops. The program decides from the last op to the first whether to save the op. Two
// labels are compared only if the same earlier results are needed. Few such states exist, because
// few values are alive at any op boundary of a block.
class ClosureProgram {
 public:
  ClosureProgram(const RegionGraph& graph, const SaveSetCosts& costs, std::size_t max_labels)
      : graph_(graph), costs_(costs), max_labels_(max_labels) {}

  SaveSets run() {
    const Prices prices(graph_, costs_.free_storages);
    State roots(num_words(), 0);
    for (int slot : demanded_slots(graph_)) need(graph_.slots[slot].use, roots);
    states_[roots] = {SaveLabel{}};
    for (int op = static_cast<int>(graph_.ops.size()) - 1; op >= 0; --op) {
      decide(op, prices.of_op(op).count);
    }
    return to_sets(states_.begin()->second, saved_ops_, prices.of_constants(), gap_);
  }

 private:
  // Two bits for each op: whether its outputs are needed, and whether it must run in any case.
  using State = std::vector<std::uint64_t>;
  static constexpr int kOpsPerWord = 32;
  static constexpr std::uint64_t kWanted = 1;
  static constexpr std::uint64_t kForced = 2;

  std::size_t num_words() const { return graph_.ops.size() / kOpsPerWord + 1; }
  static int shift(int op) { return 2 * (op % kOpsPerWord); }

  void need(const RegionUse& use, State& state) const {
    const RegionValue& value = graph_.values[use.value];
    if (!value.producer.has_value() || value.constant) return;
    mark(*value.producer, can_be_kept(graph_, use.value) ? kWanted : kForced, state);
    const std::vector<int>& writes = graph_.storages[value.storage].writes;
    const auto num_writes = std::min<std::size_t>(use.version, writes.size());
    for (std::size_t i = 0; i < num_writes; ++i) mark(writes[i], kForced, state);
  }

  static void mark(int op, std::uint64_t how, State& state) {
    state[op / kOpsPerWord] |= how << shift(op);
  }

  void decide(int op, std::int64_t price) {
    std::map<State, std::vector<SaveLabel>> next;
    for (auto& [state, labels] : states_) {
      const std::uint64_t how = (state[op / kOpsPerWord] >> shift(op)) & (kWanted | kForced);
      State rest = state;
      rest[op / kOpsPerWord] &= ~((kWanted | kForced) << shift(op));
      if (how == 0) {
        append(next[rest], labels);
        continue;
      }
      if (how == kWanted) append(next[rest], saved(labels, op, price));
      // saving is free, so recomputing the op cannot be better
      if (how == kWanted && price == 0) continue;
      for (const RegionUse& read : graph_.ops[op].reads) need(read, rest);
      const std::int64_t time = time_with_waits(graph_, costs_, op, 0);
      for (SaveLabel& label : labels) label.time_ns += time;
      append(next[rest], labels);
    }
    states_ = std::move(next);
    tidy();
  }

  std::vector<SaveLabel> saved(std::vector<SaveLabel> labels, int op, std::int64_t price) {
    for (SaveLabel& label : labels) {
      label.bytes += price;
      label.last = saved_ops_.add(label.last, op);
    }
    return labels;
  }

  static void append(std::vector<SaveLabel>& to, const std::vector<SaveLabel>& labels) {
    to.insert(to.end(), labels.begin(), labels.end());
  }

  void tidy() {
    std::size_t num_labels = 0;
    for (auto& [state, labels] : states_) {
      keep_undominated(labels);
      num_labels += labels.size();
    }
    while (num_labels > max_labels_) {
      const std::size_t before = num_labels;
      std::int64_t worst = 0;
      num_labels = 0;
      for (auto& [state, labels] : states_) {
        worst = std::max(worst, thin(labels, &SaveLabel::time_ns));
        num_labels += labels.size();
      }
      gap_ += worst;
      // each state has only one or two labels, so thinning cannot drop any
      if (num_labels == before) break;
    }
  }

  const RegionGraph& graph_;
  const SaveSetCosts& costs_;
  std::size_t max_labels_;
  std::map<State, std::vector<SaveLabel>> states_;
  ChoiceLists<int> saved_ops_;
  std::int64_t gap_ = 0;
};

// Finds save sets for schedule whole_region. Recompute then runs every op before op `stop`, except
// ops whose results are kept. The time of a save set is therefore a sum over ops.
class PrefixProgram {
 public:
  PrefixProgram(const RegionGraph& graph, const SaveSetCosts& costs, std::size_t max_labels)
      : graph_(graph), costs_(costs), max_labels_(max_labels) {}

  SaveSets run() {
    const Prices prices(graph_, costs_.free_storages);
    std::vector<SaveLabel> labels = {{0, time_without_saves(), std::nullopt}};
    std::int64_t gap = 0;
    for (int op : savable_ops(graph_, costs_)) {
      std::vector<SaveLabel> with_op = labels;
      for (SaveLabel& label : with_op) {
        label.bytes += prices.of_op(op).count;
        label.time_ns -= time_with_waits(graph_, costs_, op, graph_.stop);
        label.last = saved_ops_.add(label.last, op);
      }
      labels.insert(labels.end(), with_op.begin(), with_op.end());
      keep_undominated(labels);
      while (labels.size() > std::max<std::size_t>(max_labels_, 2))
        gap += thin(labels, &SaveLabel::time_ns);
    }
    return to_sets(labels, saved_ops_, prices.of_constants(), gap);
  }

 private:
  std::int64_t time_without_saves() const {
    if (demanded_slots(graph_).empty()) return 0;
    std::int64_t time = 0;
    for (int op = 0; op < graph_.stop; ++op) {
      if (!graph_.ops[op].side_effect && !is_answered_by_constants(op)) {
        time += time_with_waits(graph_, costs_, op, graph_.stop);
      }
    }
    return time;
  }

  bool is_answered_by_constants(int op) const {
    const RegionOp& recorded = graph_.ops[op];
    return !recorded.is_view && recorded.writes.empty() && !recorded.outputs.empty() &&
           std::all_of(recorded.outputs.begin(), recorded.outputs.end(),
                       [this](int output) { return graph_.values[output].constant; });
  }

  const RegionGraph& graph_;
  const SaveSetCosts& costs_;
  std::size_t max_labels_;
  ChoiceLists<int> saved_ops_;
};

// Returns whether saving the op avoids running it again. This requires that all outputs of the op
// can be kept.
bool is_sparable(const RegionGraph& graph, int op) {
  const std::vector<int>& outputs = graph.ops[op].outputs;
  bool some = false;
  for (int output : outputs) {
    if (!can_be_kept(graph, output) && !graph.values[output].constant) return false;
    some |= can_be_kept(graph, output);
  }
  return some;
}

// Returns the ops that recompute may run: all ops before op `stop`, or all ops on which demanded
// slots depend.
std::vector<bool> may_run(const RegionGraph& graph, const SaveSetCosts& costs) {
  const std::vector<int> demanded = demanded_slots(graph);
  if (costs.schedule == Schedule::kWholeRegion) {
    std::vector<bool> runs(graph.ops.size(), false);
    if (!demanded.empty()) std::fill(runs.begin(), runs.begin() + graph.stop, true);
    return runs;
  }
  std::vector<RegionUse> roots;
  for (int slot : demanded) roots.push_back(graph.slots[slot].use);
  return closure_of(graph, kept_if_all_is_recomputed(graph), roots);
}

}  // namespace

std::vector<int> demanded_slots(const RegionGraph& graph) {
  std::vector<bool> alive(graph.slots.size(), true);
  std::vector<bool> demanded(graph.slots.size(), false);
  for (const RegionEvent& event : graph.events) {
    if (event.kind == BackwardEvent::Kind::kOp) continue;
    if (event.kind == BackwardEvent::Kind::kRelease) {
      alive[*event.slot] = false;
      continue;
    }
    const RegionUse& use = graph.slots[*event.slot].use;
    demanded[*event.slot] = alive[*event.slot] && can_be_recomputed(graph, use);
  }
  std::vector<int> slots;
  for (std::size_t slot = 0; slot < demanded.size(); ++slot) {
    if (demanded[slot]) slots.push_back(static_cast<int>(slot));
  }
  return slots;
}

std::vector<int> savable_ops(const RegionGraph& graph, const SaveSetCosts& costs) {
  const std::vector<bool> runs = may_run(graph, costs);
  std::vector<bool> is_read(graph.values.size(), false);
  for (std::size_t op = 0; op < graph.ops.size(); ++op) {
    if (!runs[op]) continue;
    for (const RegionUse& read : graph.ops[op].reads) is_read[read.value] = true;
  }
  for (int slot : demanded_slots(graph)) is_read[graph.slots[slot].use.value] = true;
  const bool runs_all = costs.schedule == Schedule::kWholeRegion;
  std::vector<int> ops;
  for (std::size_t op = 0; op < graph.ops.size(); ++op) {
    if (!runs[op] || graph.ops[op].side_effect) continue;
    if (!costs.never_saved.empty() && costs.never_saved[op]) continue;
    if (runs_all && !is_sparable(graph, static_cast<int>(op))) continue;
    const std::vector<int>& outputs = graph.ops[op].outputs;
    if (std::any_of(outputs.begin(), outputs.end(),
                    [&](int value) { return is_read[value] && can_be_kept(graph, value); })) {
      ops.push_back(static_cast<int>(op));
    }
  }
  return ops;
}

SaveSets find_save_sets(const RegionGraph& graph, const SaveSetCosts& costs,
                        std::size_t max_labels) {
  if (costs.schedule == Schedule::kWholeRegion) {
    return PrefixProgram(graph, costs, max_labels).run();
  }
  return ClosureProgram(graph, costs, max_labels).run();
}

}  // namespace rematch
