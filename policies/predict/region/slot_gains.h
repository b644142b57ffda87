// Bytes that running a saved tensor's ops early would free, cached until something changes that the
// answer rests on.
#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "policies/base/bytes.h"

namespace rematch {

class SlotGains {
 public:
  SlotGains(std::size_t num_slots, std::size_t num_values, std::size_t num_storages)
      : gains_(num_slots), of_value_(num_values), of_storage_(num_storages) {
    for (std::size_t slot = 0; slot < num_slots; ++slot)
      forgotten_.push_back(static_cast<int>(slot));
  }

  // Nothing: not weighed since something changed.
  std::optional<Bytes> of(int slot) const { return gains_[slot]; }

  // Slots of which that became true since the last call; at first, all.
  std::vector<int> take_forgotten() { return std::exchange(forgotten_, {}); }

  void remember(int slot, Bytes gain) { gains_[slot] = gain; }
  void rests_on_value(int slot, int value) { of_value_[value].push_back(slot); }
  void rests_on_storage(int slot, int storage) { of_storage_[storage].push_back(slot); }

  void value_changed(int value) { forget(of_value_[value]); }
  void storage_changed(int storage) { forget(of_storage_[storage]); }

 private:
  void forget(std::vector<int>& slots) {
    for (const int slot : slots) {
      if (gains_[slot]) forgotten_.push_back(slot);
      gains_[slot].reset();
    }
    slots.clear();
  }

  std::vector<int> forgotten_;
  std::vector<std::optional<Bytes>> gains_;  // by slot
  std::vector<std::vector<int>> of_value_;   // slots by value, some of them more than once
  std::vector<std::vector<int>> of_storage_;
};

}  // namespace rematch
