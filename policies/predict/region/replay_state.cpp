#include "policies/predict/region/replay_state.h"

namespace rematch {

ReplayState::ReplayState(const RegionGraph& graph, const std::vector<bool>& kept)
    : graph_(graph),
      planner_(RegionIntegers(graph), tables_),
      num_holders_(graph.storages.size(), 0),
      planned_slots_(graph.slots.size(), false),
      taken_(graph.slots.size(), false),
      weighed_reads_(graph.values.size()),
      weighed_holders_(graph.storages.size()),
      is_original_(graph.storages.size(), false) {
  for (std::size_t value = 0; value < kept.size(); ++value) {
    if (!kept[value]) continue;
    hold(static_cast<int>(value));
    // a constant gets one extra use, so it is never released
    if (graph.values[value].constant) planner_.await(static_cast<int>(value));
    const int storage = graph.values[value].storage;
    if (graph.storages[storage].outside || is_original_[storage]) continue;
    is_original_[storage] = true;
    held_originals_ += graph.storages[storage].bytes;
  }
}

void ReplayState::plan_closure(const std::vector<int>& slots) {
  hold_copied();
  planner_.plan_closure(await_slots(slots));
  release_unneeded();
}

void ReplayState::plan_prefix(const std::vector<int>& slots, int stop,
                              const std::vector<int>& skipped) {
  for (const int op : skipped) planner_.skip(op);
  hold_copied();
  planner_.plan_prefix(stop, await_slots(slots));
  release_unneeded();
}

void ReplayState::hold_copied() {
  for (std::size_t value = 0; value < graph_.values.size(); ++value) {
    if (graph_.values[value].copied) hold(static_cast<int>(value));
  }
}

std::vector<RegionUse> ReplayState::await_slots(const std::vector<int>& slots) {
  std::vector<RegionUse> uses;
  for (const int slot : slots) {
    planned_slots_[slot] = true;
    uses.push_back(graph_.slots[slot].use);
    planner_.await(uses.back().value);
  }
  return uses;
}

void ReplayState::release_unneeded() {
  for (std::size_t id = 0; id < graph_.values.size(); ++id) {
    const auto value = static_cast<int>(id);
    if (planner_.is_there(value) && !planner_.is_needed(value)) release_value(value);
  }
}

ReplayState::Running ReplayState::execute(int op_index) {
  const RegionOp& op = graph_.ops[op_index];
  planner_.start(op_index);
  // bytes of kept outputs that the op allocates again because it also recomputes another output
  Bytes replaced;
  for (int output : op.outputs) {
    // Gains depend on which ops are still planned, so they change even if this output is not needed
    // again.
    value_changed(output);
    const int storage = graph_.values[output].storage;
    if (planner_.is_there(output)) {
      if (!graph_.storages[storage].outside) replaced += graph_.storages[storage].bytes;
      release_original(storage);  // the region now holds the recomputed instance instead
    } else {
      hold(output);
    }
  }
  const Bytes most = held_ + replaced;
  std::vector<int> returned = op.writes;  // an in-place op returns the storage that it wrote
  if (op.returns_input) returned.push_back(graph_.values[op.reads.front().value].storage);
  for (const int storage : returned) retain(storage);
  for (const RegionUse& read : op.reads) drop_use(read.value);
  const Bytes at_boundary = held_ + replaced;
  for (const int storage : returned) release(storage);
  for (int output : op.outputs) {
    if (planner_.is_there(output) && !planner_.make(output)) release_value(output);
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

SlotGains& ReplayState::gains() {
  if (!gains_) {
    gains_.emplace(graph_.slots.size(), graph_.values.size(), graph_.storages.size());
  }
  return *gains_;
}

Bytes ReplayState::gain_of(int slot, std::size_t at_most) {
  if (const std::optional<Bytes> known = gains().of(slot)) return *known;
  const Bytes gain = weigh(slot, at_most);
  gains_->remember(slot, gain);
  return gain;
}

// Computes a gain, which depends on the values that are present, their remaining reads, and the
// holders of their storages.
Bytes ReplayState::weigh(int slot, std::size_t at_most) {
  const RegionUse& use = graph_.slots[slot].use;
  const std::vector<int>& ops = planner_.find_missing(use, at_most);
  gains_->rests_on_value(slot, use.value);
  for (const int op : ops) {
    for (const RegionUse& read : graph_.ops[op].reads) weighed_reads_.add(read.value, 1);
    for (const int output : graph_.ops[op].outputs) gains_->rests_on_value(slot, output);
  }
  for (const int value : weighed_reads_.touched()) gains_->rests_on_value(slot, value);
  if (ops.empty() || ops.size() > at_most) {
    weighed_reads_.clear();
    return {};
  }
  for (const int value : weighed_reads_.touched()) {
    if (planner_.is_there(value) && planner_.num_uses(value) == weighed_reads_.of(value)) {
      weighed_holders_.add(graph_.values[value].storage, -1);
    }
  }
  for (const int op : ops) {
    for (const int output : graph_.ops[op].outputs) {
      if (!planner_.is_there(output) && planner_.num_uses(output) > weighed_reads_.of(output)) {
        weighed_holders_.add(graph_.values[output].storage, 1);
      }
    }
  }
  Bytes gain;
  for (const int storage : weighed_holders_.touched()) {
    if (graph_.storages[storage].outside) continue;
    gains_->rests_on_storage(slot, storage);
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
  planner_.hold(value);
  value_changed(value);
  retain(graph_.values[value].storage);
}

void ReplayState::release_value(int value) {
  planner_.release(value);
  value_changed(value);
  release(graph_.values[value].storage);
}

void ReplayState::retain(int storage) {
  storage_changed(storage);
  if (num_holders_[storage]++ == 0 && !graph_.storages[storage].outside) {
    held_ += graph_.storages[storage].bytes;
  }
}

void ReplayState::release(int storage) {
  storage_changed(storage);
  if (--num_holders_[storage] == 0 && !graph_.storages[storage].outside) {
    held_ -= graph_.storages[storage].bytes;
    release_original(storage);
  }
}

void ReplayState::release_original(int storage) {
  if (!is_original_[storage]) return;
  is_original_[storage] = false;
  held_originals_ -= graph_.storages[storage].bytes;
  released_originals_.push_back(storage);
}

std::vector<int> ReplayState::originals() const {
  std::vector<int> storages;
  for (std::size_t storage = 0; storage < is_original_.size(); ++storage) {
    if (is_original_[storage]) storages.push_back(static_cast<int>(storage));
  }
  return storages;
}

void ReplayState::drop_use(int value) {
  const bool was_there = planner_.is_there(value);
  value_changed(value);
  if (planner_.read(value) && was_there) release(graph_.values[value].storage);
}

}  // namespace rematch
