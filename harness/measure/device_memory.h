// One interface to the memory of a device: counting allocators on the CPU and on meta, and the
// caching allocator on an accelerator. The caching allocator stores no tags, so DeviceMemory keeps
// a list of them. Bytes outside the list count as kOther.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Storage.h>

#include <optional>

#include "harness/measure/followed_storages.h"
#include "harness/measure/memory.h"

namespace rematch {

class DeviceMemory {
 public:
  explicit DeviceMemory(c10::Device device);

  // Bytes alive. An accelerator's allocator counts rounded sizes.
  MemorySample sample();
  // Most bytes alive since reset_peak().
  Bytes peak();
  void reset_peak();
  // Bytes that the allocator has reserved from the driver. Absent on devices without a driver.
  std::optional<Bytes> peak_reserved();

  // Like retag_storage(): moves the bytes of an allocation to a tag. Returns the number of bytes
  // moved.
  Bytes tag_if_other(const c10::Storage& storage, MemoryTag tag);
  Bytes tag(const c10::Storage& storage, MemoryTag tag);

 private:
  bool counts_itself() const { return device_.is_cpu() || device_.is_meta(); }

  c10::Device device_;
  FollowedStorages followed_;  // tags of storages; used only for accelerators
};

}  // namespace rematch
