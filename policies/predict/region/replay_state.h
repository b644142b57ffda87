// Tracks the bytes of the values that the replay planner manages, for one region in one backward
// pass. The engine's Replay does the same with tensors.
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

// Caches the gain of each slot: the bytes that running the slot's ops early would free. A gain is
// valid until a value on which it depends changes.

class SlotGains {
 public:
  SlotGains(std::size_t num_slots, std::size_t num_values, std::size_t num_storages)
      : gains_(num_slots), of_value_(num_values), of_storage_(num_storages) {
    for (std::size_t slot = 0; slot < num_slots; ++slot)
      forgotten_.push_back(static_cast<int>(slot));
  }

  // Returns nullopt if the gain is unknown: it was never computed, or a value on which it depends
  // has changed.
  std::optional<Bytes> of(int slot) const { return gains_[slot]; }

  // Returns the slots whose gain has become unknown since the previous call. The first call returns
  // all slots.
  std::vector<int> take_forgotten() { return std::exchange(forgotten_, {}); }

  void remember(int slot, Bytes gain) { gains_[slot] = gain; }
  void rests_on_value(int slot, int value) { add(slot, of_value_[value]); }
  void rests_on_storage(int slot, int storage) { add(slot, of_storage_[storage]); }

  void value_changed(int value) { forget(of_value_[value]); }
  void storage_changed(int storage) { forget(of_storage_[storage]); }

 private:
  // An entry of a linked list of slots. All lists share one vector, because a simulation makes
  // thousands of short lists, and a vector for each would take most of its time.
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
  // For each value, and for each storage: the first entry of the list of slots whose gain depends
  // on it. A list may repeat a slot.
  std::vector<OptionalIndex> of_value_;
  std::vector<OptionalIndex> of_storage_;
  std::vector<Entry> entries_;
};

class ReplayState {
 public:
  // Starts in the state after forward, in which kept values are held. The graph must outlive the
  // state.
  ReplayState(const RegionGraph& graph, const std::vector<bool>& kept);
  ReplayState(const ReplayState&) = delete;
  ReplayState& operator=(const ReplayState&) = delete;

  // plan_closure() plans the ops that the live slots depend on. plan_prefix() plans all ops below
  // `stop`. It omits ops whose results are kept, and it omits an op of `skipped` if nothing needs
  // the op. Both functions release kept values that nothing needs.
  void plan_closure(const std::vector<int>& slots);
  void plan_prefix(const std::vector<int>& slots, int stop, const std::vector<int>& skipped);

  // These functions return the planned ops that have not run, in order: all of them, or only the
  // ops that a slot needs. Each call invalidates the list that the previous call returned.
  const std::vector<int>& missing() { return planner_.list_planned(); }
  const std::vector<int>& missing(int slot) {
    return planner_.list_missing(graph_.slots[slot].use);
  }

  // Runs an op and releases values that are not needed after it.
  struct Running {
    Bytes most;  // bytes held while the op ran, including its inputs
    // Bytes held after the op ran. At this point its inputs are released and all its results are
    // present.
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
  // The part of held() that consists of kept values, which forward made.
  Bytes held_originals() const { return held_originals_; }

  // originals() returns the local storages held since forward. take_released_originals() returns
  // the storages that were released since its previous call.
  std::vector<int> originals() const;
  std::vector<int> take_released_originals() { return std::exchange(released_originals_, {}); }

  // Returns the net bytes that are freed if the ops that the slot needs run now: the bytes that
  // become free, minus the bytes that the results take. Returns 0 if the slot needs no op or more
  // than `at_most` ops. `at_most` must be the same in every call.
  Bytes gain_of(int slot, std::size_t at_most);
  // Returns the slots whose gain may have changed since the previous call. The first call returns
  // all slots.
  std::vector<int> take_unweighed() { return gains().take_forgotten(); }

 private:
  // Sums indexed by small integers. All sums are 0, except the sums changed since the last clear().
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
  // indexed by storage: number of held values and of slots that backward holds
  std::vector<int> num_holders_;
  std::vector<bool> planned_slots_;
  std::vector<bool> taken_;         // indexed by slot: whether backward holds it
  Sums weighed_reads_;              // indexed by value; used while a gain is computed
  Sums weighed_holders_;            // indexed by storage; used while a gain is computed
  std::optional<SlotGains> gains_;  // created when a gain is first requested
  Bytes held_;
  // indexed by storage: whether the instance that forward made is held
  std::vector<bool> is_original_;
  Bytes held_originals_;
  std::vector<int> released_originals_;
};

}  // namespace rematch
