// Tracks the bytes of the values that the replay planner manages, for one region in one backward
// pass. The engine's Replay manages the tensors themselves in the same way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "policies/base/bytes.h"
#include "policies/predict/region/region.h"
#include "policies/replay/replay_planner.h"

namespace rematch {

// Caches the gain of each slot: the net bytes that running the slot's ops early would free. A gain
// is valid until a value or storage on which it depends changes.

class SlotGains {
 public:
  SlotGains(std::size_t num_slots, std::size_t num_values, std::size_t num_storages)
      : gains_(num_slots), of_value_(num_values), of_storage_(num_storages) {
    for (std::size_t slot = 0; slot < num_slots; ++slot)
      forgotten_.push_back(static_cast<int>(slot));
  }

  // Returns nullopt if the gain was not computed, or may have changed since.
  std::optional<Bytes> of(int slot) const { return gains_[slot]; }

  // Returns the slots whose gain has become invalid since the previous call. The first call returns
  // all slots.
  std::vector<int> take_forgotten() { return std::exchange(forgotten_, {}); }

  void remember(int slot, Bytes gain) { gains_[slot] = gain; }
  void rests_on_value(int slot, int value) { add(slot, of_value_[value]); }
  void rests_on_storage(int slot, int storage) { add(slot, of_storage_[storage]); }

  void value_changed(int value) { forget(of_value_[value]); }
  void storage_changed(int storage) { forget(of_storage_[storage]); }

 private:
  // An entry of a linked list of slots. All lists share one vector, because allocating a vector for
  // each list would be slow.
  struct Entry {
    int slot = 0;
    OptionalIndex next;  // index into entries_
  };

  void add(int slot, OptionalIndex& first) {
    entries_.push_back({slot, first});
    first = static_cast<int>(entries_.size()) - 1;
  }

  void forget(OptionalIndex& first) {
    for (OptionalIndex entry = std::exchange(first, std::nullopt); entry.has_value();) {
      const Entry& each = entries_[*entry];
      if (gains_[each.slot]) forgotten_.push_back(each.slot);
      gains_[each.slot].reset();
      entry = each.next;
    }
  }

  std::vector<int> forgotten_;
  std::vector<std::optional<Bytes>> gains_;  // indexed by slot
  // of_value_[v] is the first entry of a list of the slots whose gain depends on value v.
  // of_storage_ does the same for storages. A list may contain a slot twice.
  std::vector<OptionalIndex> of_value_;
  std::vector<OptionalIndex> of_storage_;
  std::vector<Entry> entries_;
};

class ReplayState {
 public:
  // Starts in the state after forward, with the kept values held. The graph must outlive the state.
  ReplayState(const RegionGraph& graph, const std::vector<bool>& kept);
  ReplayState(const ReplayState&) = delete;
  ReplayState& operator=(const ReplayState&) = delete;

  // plan_closure() plans the ops that the live slots depend on. plan_prefix() plans all ops below
  // `stop`, except ops whose results are kept. It plans an op of `skipped` only if a slot or
  // another planned op needs it. Both functions release kept values that nothing needs.
  void plan_closure(const std::vector<int>& slots);
  void plan_prefix(const std::vector<int>& slots, int stop, const std::vector<int>& skipped);

  // These functions return the planned ops that have not run yet, in order: all of them, or only
  // the ops that a slot needs. The list is valid until the next call of missing().
  const std::vector<int>& missing() { return planner_.list_planned(); }
  const std::vector<int>& missing(int slot) {
    return planner_.list_missing(graph_.slots[slot].use);
  }

  // Runs an op, and then releases values that are no longer needed.
  struct Running {
    Bytes most;  // bytes held while the op ran, including its inputs
    // bytes held after the op ran, with its inputs released and all its results present
    Bytes at_boundary;
  };
  Running execute(int op);

  // take(): backward demands a slot. finish(): backward releases the slot. drop(): autograd drops
  // the slot without a demand.
  void take(int slot);
  void finish(int slot);
  void drop(int slot);

  bool is_planned_slot(int slot) const { return planned_slots_[slot]; }
  Bytes held() const { return held_; }
  // the part of held() that forward allocated
  Bytes held_originals() const { return held_originals_; }

  // originals() returns the local storages held since forward. take_released_originals() returns
  // the storages from forward that were released since its previous call.
  std::vector<int> originals() const;
  std::vector<int> take_released_originals() { return std::exchange(released_originals_, {}); }

  // Returns the net bytes that would be freed by running the slot's missing ops now: the bytes
  // freed minus the bytes of the results. Returns 0 if the slot needs no op or more than `at_most`
  // ops. `at_most` must be the same in every call.
  Bytes gain_of(int slot, std::size_t at_most);
  // Returns the slots whose gain may have changed since the previous call. The first call returns
  // all slots.
  std::vector<int> take_unweighed() { return gains().take_forgotten(); }

 private:
  // Sums indexed by small integers. clear() resets only the sums that were changed.
  class Sums {
   public:
    explicit Sums(std::size_t size) : sums_(size, 0), is_touched_(size, false) {}
    void add(int index, int by) {
      if (!is_touched_[index]) touched_.push_back(index);
      is_touched_[index] = true;
      sums_[index] += by;
    }
    int of(int index) const { return sums_[index]; }
    const std::vector<int>& touched() const { return touched_; }
    void clear() {
      for (const int index : touched_) {
        sums_[index] = 0;
        is_touched_[index] = false;
      }
      touched_.clear();
    }

   private:
    std::vector<int> sums_;
    std::vector<char> is_touched_;
    std::vector<int> touched_;
  };

  void hold_copied();
  std::vector<RegionUse> await_slots(const std::vector<int>& slots);
  void release_unneeded();
  void hold(int value);
  void release_value(int value);
  void retain(int storage);
  void release(int storage);
  void drop_use(int value);
  void release_original(int storage);
  SlotGains& gains();
  Bytes weigh(int slot, std::size_t at_most);
  void value_changed(int value) {
    if (gains_) gains_->value_changed(value);
  }
  void storage_changed(int storage) {
    if (gains_) gains_->storage_changed(storage);
  }

  const RegionGraph& graph_;
  ReplayTables tables_;
  ReplayPlanner<RegionIntegers> planner_;
  // indexed by storage: number of held values and taken slots
  std::vector<int> num_holders_;
  std::vector<bool> planned_slots_;
  std::vector<bool> taken_;         // indexed by slot: whether backward holds it
  Sums weighed_reads_;              // indexed by value; used while a gain is computed
  Sums weighed_holders_;            // indexed by storage; used while a gain is computed
  std::optional<SlotGains> gains_;  // created when a gain is first requested
  Bytes held_;
  // indexed by storage: whether the region still holds the storage from forward
  std::vector<bool> is_original_;
  Bytes held_originals_;
  std::vector<int> released_originals_;
};

}  // namespace rematch
