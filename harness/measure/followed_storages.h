// Storages that are followed from outside, for allocators that carry no tags: each has a tag and
// bytes for as long as somebody holds it.
#pragma once

#include <c10/core/Storage.h>

#include <algorithm>
#include <vector>

#include "harness/measure/memory.h"

namespace rematch {

struct FollowedStorage {
  c10::weak_intrusive_ptr<c10::StorageImpl> storage;
  MemoryTag tag = MemoryTag::kOther;
  Bytes bytes;
};

class FollowedStorages {
 public:
  // Does nothing, and says no, where it is followed already.
  bool follow(const c10::Storage& storage, MemoryTag tag, Bytes bytes) {
    if (find(storage) != nullptr) return false;
    followed_.push_back({storage.getWeakStorageImpl(), tag, bytes});
    return true;
  }

  // Null if it is not followed. Good until the next call of another function.
  FollowedStorage* find(const c10::Storage& storage) {
    const c10::StorageImpl* const wanted = storage.unsafeGetStorageImpl();
    // The newest is asked for most often.
    const auto found = std::find_if(
        followed_.rbegin(), followed_.rend(),
        [&](const FollowedStorage& entry) { return entry.storage._unsafe_get_target() == wanted; });
    return found == followed_.rend() ? nullptr : &*found;
  }

  // Those that somebody holds; forgets the others.
  const std::vector<FollowedStorage>& alive() {
    std::erase_if(followed_, [](const FollowedStorage& entry) { return entry.storage.expired(); });
    return followed_;
  }

 private:
  std::vector<FollowedStorage> followed_;
};

}  // namespace rematch
