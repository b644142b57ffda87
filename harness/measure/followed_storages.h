// Keeps the tags and sizes of storages whose allocator stores no tags. An entry lives as long as
// its storage.
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
  // Adds the storage to the list. Returns false if the list already contains the storage.
  bool follow(const c10::Storage& storage, MemoryTag tag, Bytes bytes) {
    if (find(storage) != nullptr) return false;
    followed_.push_back({storage.getWeakStorageImpl(), tag, bytes});
    return true;
  }

  // Returns null if the list does not contain the storage. The pointer is valid until another
  // function of this object is called.
  FollowedStorage* find(const c10::Storage& storage) {
    const c10::StorageImpl* const wanted = storage.unsafeGetStorageImpl();
    // Searches from the end, because the newest storage is looked up most often.
    const auto found = std::find_if(
        followed_.rbegin(), followed_.rend(),
        [&](const FollowedStorage& entry) { return entry.storage._unsafe_get_target() == wanted; });
    return found == followed_.rend() ? nullptr : &*found;
  }

  // Returns the storages that are alive, and drops the others.
  const std::vector<FollowedStorage>& alive() {
    std::erase_if(followed_, [](const FollowedStorage& entry) { return entry.storage.expired(); });
    return followed_;
  }

 private:
  std::vector<FollowedStorage> followed_;
};

}  // namespace rematch
