// A flat hash map from addresses to small integers, which identifies tensors and storages during a
// recording. Sized for the few hundred tensors of a region, and cleared and reused for the next
// region.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "policies/base/id.h"

namespace rematch {

class PointerMap {
 public:
  PointerMap() : entries_(kInitialCapacity) {}

  // The integer stored for `key`; absent if the map does not contain the key.
  OptionalIndex find(const void* key) const {
    for (std::size_t i = slot_of(key);; i = (i + 1) & mask()) {
      if (entries_[i].key == key) return entries_[i].value;
      if (entries_[i].key == nullptr) return std::nullopt;
    }
  }

  // `key` must not be null. Replaces an existing entry.
  void set(const void* key, std::int32_t value) {
    if (2 * (size_ + 1) > entries_.size()) grow();
    insert(key, value);
  }

  void erase(const void* key) {
    std::size_t hole = slot_of(key);
    for (; entries_[hole].key != key; hole = (hole + 1) & mask()) {
      if (entries_[hole].key == nullptr) return;
    }
    // Moves later entries forward to fill the gap, unless that would move an entry before its home
    // slot.
    for (std::size_t i = (hole + 1) & mask(); entries_[i].key != nullptr; i = (i + 1) & mask()) {
      const std::size_t distance = (i - slot_of(entries_[i].key)) & mask();
      if (distance < ((i - hole) & mask())) continue;
      entries_[hole] = entries_[i];
      hole = i;
    }
    entries_[hole] = Entry{};
    --size_;
  }

  void clear() {
    if (size_ == 0) return;
    entries_.assign(entries_.size(), Entry{});
    size_ = 0;
  }

 private:
  static constexpr std::size_t kInitialCapacity = 256;  // a power of two
  struct Entry {
    const void* key = nullptr;
    std::int32_t value = 0;
  };

  std::size_t mask() const { return entries_.size() - 1; }
  // Heap addresses have equal low bits, so a multiplicative hash mixes the other bits.
  std::size_t slot_of(const void* key) const {
    const auto address = reinterpret_cast<std::uintptr_t>(key) >> 4U;
    return (address * 0x9E3779B97F4A7C15ULL >> 32U) & mask();
  }
  void insert(const void* key, std::int32_t value) {
    std::size_t i = slot_of(key);
    while (entries_[i].key != nullptr && entries_[i].key != key) i = (i + 1) & mask();
    if (entries_[i].key == nullptr) ++size_;
    entries_[i] = {key, value};
  }
  void grow() {
    std::vector<Entry> old(entries_.size() * 2);
    old.swap(entries_);
    size_ = 0;
    for (const Entry& entry : old) {
      if (entry.key != nullptr) insert(entry.key, entry.value);
    }
  }

  std::vector<Entry> entries_;
  std::size_t size_ = 0;
};

}  // namespace rematch
