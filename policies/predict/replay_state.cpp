#include "policies/predict/replay_state.h"

#include <algorithm>

namespace rematch {
ReplayState::ReplayState(const RegionGraph& graph, const std::vector<bool>& kept)
    : graph_(graph),
      kept_(kept),
      available_(graph.values.size(), false),
      num_uses_(graph.values.size(), 0),
      num_holders_(graph.storages.size(), 0),
      planned_(graph.ops.size(), false),
      planned_slots_(graph.slots.size(), false),
      taken_(graph.slots.size(), false),
      readers_(graph.storages.size()),
      listed_in_(graph.ops.size(), 0),
      weighed_reads_(graph.values.size()),
      weighed_holders_(graph.storages.size()),
      is_original_(graph.storages.size(), false) {
  for (std::size_t value = 0; value < kept.size(); ++value) {
    if (graph.values[value].constant) ++num_uses_[value];  // never given away
    if (!kept[value]) continue;
    hold(static_cast<int>(value));
    const int storage = graph.values[value].storage;
    if (graph.storages[storage].outside || is_original_[storage]) continue;
    is_original_[storage] = true;
    held_originals_ += graph.storages[storage].bytes;
  }
  for (std::size_t op = 0; op < graph.ops.size(); ++op) {
    for (const RegionUse& read : graph.ops[op].reads) {
      const int storage = graph.values[read.value].storage;
      if (graph.storages[storage].writes.empty()) continue;
      readers_[storage].push_back({static_cast<int>(op), read.version});
    }
  }
}

void ReplayState::plan_closure(const std::vector<int>& slots) {
  plan_slots(slots);
  std::vector<RegionUse> roots;
  for (int slot : slots) roots.push_back(graph_.slots[slot].use);
  const std::vector<bool> closure = closure_of(graph_, kept_, roots);
  for (std::size_t op = 0; op < closure.size(); ++op) {
    if (closure[op]) plan_op(static_cast<int>(op));
  }
  let_go_of_unneeded();
}

void ReplayState::plan_prefix(const std::vector<int>& slots, int stop) {
  plan_slots(slots);
  for (int op = 0; op < stop; ++op) {
    if (!graph_.ops[op].side_effect && !is_answered(op)) plan_op(op);
  }
  for (int op = 0; op < stop; ++op) {
    if (!planned_[op]) continue;
    for (const int wait : graph_.ops[op].waits) {
      if (!planned_[wait]) plan_op(wait);
    }
  }
  let_go_of_unneeded();
}

void ReplayState::plan_slots(const std::vector<int>& slots) {
  for (int slot : slots) {
    planned_slots_[slot] = true;
    ++num_uses_[graph_.slots[slot].use.value];
  }
}

void ReplayState::plan_op(int op) {
  planned_[op] = true;
  for (const RegionUse& read : graph_.ops[op].reads) ++num_uses_[read.value];
}

void ReplayState::let_go_of_unneeded() {
  for (std::size_t value = 0; value < available_.size(); ++value) {
    if (available_[value] && num_uses_[value] == 0) let_go(static_cast<int>(value));
  }
}

// All it would make is kept, so a re-run need not run it.
bool ReplayState::is_answered(int op) const {
  const RegionOp& recorded = graph_.ops[op];
  return !recorded.is_view && recorded.writes.empty() && !recorded.outputs.empty() &&
         std::all_of(recorded.outputs.begin(), recorded.outputs.end(),
                     [this](int value) { return kept_[value]; });
}

std::vector<int> ReplayState::missing() const {
  std::vector<int> ops;
  for (std::size_t op = 0; op < planned_.size(); ++op) {
    if (planned_[op]) ops.push_back(static_cast<int>(op));
  }
  return ops;
}

std::vector<int> ReplayState::missing(int slot) const {
  std::vector<int> ops;
  list_missing(slot, SIZE_MAX, ops);
  std::sort(ops.begin(), ops.end());
  return ops;
}

void ReplayState::list_missing(int slot, std::size_t at_most, std::vector<int>& ops) const {
  ops.clear();
  ++search_;
  require(graph_.slots[slot].use, at_most, ops);
}

// What a read waits for: ops that make the value at that version, what these wait for, and, before
// a write, planned readers of what it overwrites.
void ReplayState::require(const RegionUse& use, std::size_t at_most, std::vector<int>& ops) const {
  const RegionValue& value = graph_.values[use.value];
  if (value.producer == kNone) return;
  if (!available_[use.value]) require_op(value.producer, at_most, ops);
  const std::vector<int>& writes = graph_.storages[value.storage].writes;
  const auto num_writes = std::min<std::size_t>(use.version, writes.size());
  for (std::size_t i = 0; i < num_writes; ++i) {
    if (!planned_[writes[i]]) continue;  // done, and earlier readers with it
    require_op(writes[i], at_most, ops);
    for (const Reader& reader : readers_[value.storage]) {
      if (reader.op < writes[i] && reader.version <= static_cast<std::int32_t>(i)) {
        require_op(reader.op, at_most, ops);
      }
    }
  }
}

void ReplayState::require_op(int op, std::size_t at_most, std::vector<int>& ops) const {
  if (!planned_[op] || listed_in_[op] == search_ || ops.size() > at_most) return;
  listed_in_[op] = search_;
  ops.push_back(op);
  for (const RegionUse& read : graph_.ops[op].reads) require(read, at_most, ops);
  for (const int wait : graph_.ops[op].waits) require_op(wait, at_most, ops);
}

ReplayState::Running ReplayState::execute(int op_index) {
  const RegionOp& op = graph_.ops[op_index];
  planned_[op_index] = false;
  Bytes replaced;  // kept, and made again because another output of the op was not kept
  for (int output : op.outputs) {
    const int storage = graph_.values[output].storage;
    if (is_available(output)) {
      if (!graph_.storages[storage].outside) replaced += graph_.storages[storage].bytes;
      let_go_of_original(storage);  // another instance of it is held
    } else {
      hold(output);
    }
  }
  const Bytes most = held_ + replaced;
  for (int written : op.writes) retain(written);  // an in-place op returns what it wrote
  for (const RegionUse& read : op.reads) drop_use(read.value);
  const Bytes at_boundary = held_ + replaced;
  for (int written : op.writes) release(written);
  for (int output : op.outputs) {
    if (num_uses_[output] == 0 && is_available(output)) let_go(output);
  }
  return {most, at_boundary};
}

void ReplayState::take(int slot) {
  const int value = graph_.slots[slot].use.value;
  planned_slots_[slot] = false;
  taken_[slot] = true;
  retain(graph_.values[value].storage);
  drop_use(value);
}

void ReplayState::finish(int slot) {
  if (!taken_[slot]) return;
  taken_[slot] = false;
  release(graph_.values[graph_.slots[slot].use.value].storage);
}

void ReplayState::drop(int slot) {
  if (!planned_slots_[slot]) return;
  planned_slots_[slot] = false;
  drop_use(graph_.slots[slot].use.value);
}

Bytes ReplayState::gain_of(const std::vector<int>& ops) const {
  for (const int op : ops) {
    for (const RegionUse& read : graph_.ops[op].reads) weighed_reads_.add(read.value, 1);
  }
  for (const int value : weighed_reads_.touched()) {
    if (is_available(value) && num_uses_[value] == weighed_reads_.of(value)) {
      weighed_holders_.add(graph_.values[value].storage, -1);
    }
  }
  for (const int op : ops) {
    for (const int output : graph_.ops[op].outputs) {
      if (!is_available(output) && num_uses_[output] > weighed_reads_.of(output)) {
        weighed_holders_.add(graph_.values[output].storage, 1);
      }
    }
  }
  Bytes gain;
  for (const int storage : weighed_holders_.touched()) {
    if (graph_.storages[storage].outside) continue;
    const bool before = num_holders_[storage] > 0;
    const bool after = num_holders_[storage] + weighed_holders_.of(storage) > 0;
    if (before && !after) gain += graph_.storages[storage].bytes;
    if (!before && after) gain -= graph_.storages[storage].bytes;
  }
  weighed_reads_.clear();
  weighed_holders_.clear();
  return gain;
}

void ReplayState::hold(int value) {
  available_[value] = true;
  retain(graph_.values[value].storage);
}

void ReplayState::let_go(int value) {
  available_[value] = false;
  release(graph_.values[value].storage);
}

void ReplayState::retain(int storage) {
  if (num_holders_[storage]++ == 0 && !graph_.storages[storage].outside) {
    held_ += graph_.storages[storage].bytes;
  }
}

void ReplayState::release(int storage) {
  if (--num_holders_[storage] == 0 && !graph_.storages[storage].outside) {
    held_ -= graph_.storages[storage].bytes;
    let_go_of_original(storage);
  }
}

void ReplayState::let_go_of_original(int storage) {
  if (!is_original_[storage]) return;
  is_original_[storage] = false;
  held_originals_ -= graph_.storages[storage].bytes;
  originals_let_go_.push_back(storage);
}

std::vector<int> ReplayState::originals() const {
  std::vector<int> storages;
  for (std::size_t storage = 0; storage < is_original_.size(); ++storage) {
    if (is_original_[storage]) storages.push_back(static_cast<int>(storage));
  }
  return storages;
}

void ReplayState::drop_use(int value) {
  if (--num_uses_[value] == 0 && is_available(value)) let_go(value);
}

}  // namespace rematch
